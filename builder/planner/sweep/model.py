"""Values of a sweep."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from builder.planner.sweep.settings import Axes, Setting
from builder.spec.model import PriceSpec, WorkloadSpec

SCHEMA = 1

UNITS = {
    "target.kv_cache": "{} KV",
    "draft.kv_cache": "draft {} KV",
    "target.weights": "{} weights",
    "draft.weights": "draft {} weights",
    "speculation.max_draft_tokens": "k {}",
    "limits.max_batch_size": "batch {}",
    "hardware.chip": "{}",
    "hardware.count": "count {}",
}


@dataclass(frozen=True)
class RowFigures:
    """Predictions of one row at one batch: the largest that the limits and the pools allow; where a goal is stated the one that meets it.

    `capacity_tokens` is what each pool holds, `sequences` how many typical requests that is. Speed is as it is served: an adaptive
    deployment does not draft where drafting loses. `draft_tokens` is the draft length of these figures. `per_million` is money per 1M
    output tokens, None where the chip's price is not given.
    """

    capacity_tokens: int
    sequences: int
    batch: int
    tokens_per_s: float
    speedup: float
    chip_count: int
    per_million: float | None
    provider: str
    error_band: float
    draft_tokens: int = 0

    @property
    def tokens_per_s_per_user(self) -> float:
        return self.tokens_per_s / self.batch

    @property
    def tokens_per_s_per_chip(self) -> float:
        return self.tokens_per_s / self.chip_count

    def as_dict(self) -> dict[str, Any]:
        derived = {"tokens_per_s_per_user": self.tokens_per_s_per_user, "tokens_per_s_per_chip": self.tokens_per_s_per_chip}
        return {**asdict(self), **derived}


@dataclass(frozen=True)
class SweepRow:
    """One combination of settings; refused ones have the codes and the first reason, and no figures."""

    number: int
    settings: Mapping[str, Setting]
    label: str
    codes: tuple[str, ...] = ()
    reason: str = ""
    figures: RowFigures | None = None

    @property
    def ok(self) -> bool:
        return not self.codes

    def as_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "settings": dict(self.settings),
            "label": self.label,
            "ok": self.ok,
            "codes": list(self.codes),
            "reason": self.reason,
            **(self.figures.as_dict() if self.figures else {}),
        }


@dataclass(frozen=True)
class Sweep:
    """All rows. `front` are the numbers of rows that no other row beats; `sentence` says which row to take, and why; `notes` which rows are
    alike."""

    name: str
    axes: Axes
    workload: WorkloadSpec
    price: PriceSpec | None
    rows: tuple[SweepRow, ...]
    front: tuple[int, ...]
    recommended: int | None
    sentence: str
    notes: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[tuple[SweepRow, RowFigures], ...]:
        """Rows that work, with their figures."""
        return tuple((row, row.figures) for row in self.rows if row.figures is not None)

    @property
    def providers(self) -> tuple[str, ...]:
        """Sources of the rows' step times, each with its error band."""
        return tuple(dict.fromkeys(f"{figures.provider} (error band {figures.error_band:.0%})" for _, figures in self.figures))

    def as_dict(self) -> dict[str, Any]:
        """The object that `tandem plan --sweep --json` prints."""
        return {
            "schema": SCHEMA,
            "kind": "prediction",
            "name": self.name,
            "axes": {field: list(values) for field, values in self.axes.items()},
            "workload": self.workload.model_dump(),
            "price": self.price.model_dump(mode="json") if self.price else None,
            "rows": [row.as_dict() for row in self.rows],
            "front": list(self.front),
            "recommended": self.recommended,
            "recommendation": self.sentence,
            "notes": list(self.notes),
        }


def row_label(settings: Mapping[str, Setting], axes: Axes) -> str:
    """`fp8 KV, k 4, batch 32`: what differs between the rows; all that was set where nothing differs."""
    differing = [field for field in settings if len(axes[field]) > 1] or list(settings)
    return ", ".join(UNITS.get(field, f"{field} {{}}").format(settings[field]) for field in differing)
