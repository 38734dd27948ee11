"""What a lane of TensorRT-LLM can do: the lane's rows of `configs/releases.yaml`, typed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder.api import StoredFormat
from plugins.nvidia.releases import Number, Release, release_data, release_number, releases

Range = tuple[int, int]
UNQUANTIZED_KV = "bf16"
CONVERTED = ("tensorrt_llm", "tensorrt_llm_engine")
"""Kinds of checkpoint whose precision is fixed, also where it is none."""


def is_fixed(stored: StoredFormat) -> bool:
    """Whether a checkpoint's weights stay what they are: it is quantized or converted already, and nothing is calibrated."""
    return bool(stored.weights) or stored.kind in CONVERTED


@dataclass(frozen=True)
class ChipSupport:
    """A compute capability and the first release of the lane that supports it."""

    sm: int
    since: str
    certainty: str
    source: str


@dataclass(frozen=True)
class Precision:
    """One number format: where it runs. `algorithms` are TensorRT-LLM's words for it; `only` names the settings that it works with."""

    name: str
    algorithms: tuple[str, ...]
    min_sm: int
    certainty: str
    source: str
    not_sm: Range | None = None
    not_why: str = ""
    since: str = ""
    only: str = ""

    def runs_on(self, sm: int) -> bool:
        return sm >= self.min_sm and not _within(sm, self.not_sm)


@dataclass(frozen=True)
class Option:
    """One key of engine.options. `values` is bool, int, text, or the allowed words; `never` says why no pair can use it."""

    name: str
    values: str | tuple[str, ...]
    certainty: str
    source: str
    default: object = None
    since: str = ""
    until: str = ""
    not_sm: Range | None = None
    only_sm: Range | None = None
    never: str = ""

    def runs_on(self, sm: int) -> bool:
        return not _within(sm, self.not_sm) and (self.only_sm is None or _within(sm, self.only_sm))

    def allows(self, value: object) -> bool:
        if self.values == "bool":
            return isinstance(value, bool)
        if self.values == "int":
            return isinstance(value, int) and not isinstance(value, bool) and value > 0
        if self.values == "text":
            return isinstance(value, str) and bool(value)
        return value in self.values

    @property
    def needed(self) -> str:
        words = {"bool": "true or false", "int": "a positive whole number", "text": "a text"}
        return words[self.values] if isinstance(self.values, str) else " | ".join(self.values)


@dataclass(frozen=True)
class Lane:
    """A lane: the range of releases that has it, and what it takes. `range` and `outside` are for messages.

    `stored` are the kinds of checkpoint that it reads.
    """

    kind: str
    title: str
    first: str
    below: str
    range: str
    outside: str
    default: str
    other: str
    certainty: str
    source: str
    stored: tuple[str, ...]
    chips: tuple[ChipSupport, ...]
    weights: Mapping[str, Precision]
    algorithms: Mapping[str, Precision]
    fp8_class: tuple[str, ...]
    kv_cache: Mapping[str, Precision]
    absent: Mapping[str, Mapping[str, str]]
    options: Mapping[str, Option]
    elsewhere: Mapping[str, str]
    changed_defaults: Mapping[str, Mapping[str, str]]
    architectures: Mapping[str, str] = field(default_factory=dict)

    def has(self, number: Number) -> bool:
        """Whether a release lies in the lane's range."""
        return number >= release_number(self.first) and (not self.below or number < release_number(self.below))

    def cache_word(self, asked: str, stored: StoredFormat) -> str:
        """What a cache holds, in the pair file's words; auto is what the checkpoint was calibrated for, or else 16 bits."""
        if asked != "auto":
            return asked
        return next((row.name for row in self.kv_cache.values() if stored.kv_cache in row.algorithms), UNQUANTIZED_KV)

    @property
    def default_release(self) -> Release:
        return releases()[self.default]

    @property
    def releases(self) -> tuple[Release, ...]:
        return tuple(r for r in releases().values() if self.has(r.number))


@cache
def find_lane(kind: str) -> Lane:
    """The rows of one `engine.kind`."""
    row = dict(release_data()["lanes"][kind])
    return Lane(
        kind=kind,
        stored=tuple(row.pop("stored")),
        chips=tuple(ChipSupport(**chip) for chip in row.pop("chips")),
        weights=_precisions(row.pop("weights")),
        algorithms=_precisions(row.pop("algorithms")),
        kv_cache=_precisions(row.pop("kv_cache")),
        fp8_class=tuple(row.pop("fp8_class")),
        options={name: _option(name, values) for name, values in row.pop("options").items()},
        architectures={name: since for since, names in row.pop("architectures").items() for name in names},
        **row,
    )


def _precisions(rows: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Precision]:
    return {name: _precision(name, dict(row)) for name, row in rows.items()}


def _precision(name: str, row: dict[str, Any]) -> Precision:
    own = row.pop("algorithm", name)
    algorithms = tuple(row.pop("algorithms", (own,)))
    return Precision(name=name, algorithms=algorithms, not_sm=_range(row.pop("not_sm", None)), **row)


def _option(name: str, row: Mapping[str, Any]) -> Option:
    rest = {key: value for key, value in row.items() if key not in ("values", "not_sm", "only_sm")}
    values = row["values"] if isinstance(row["values"], str) else tuple(row["values"])
    return Option(name=name, values=values, not_sm=_range(row.get("not_sm")), only_sm=_range(row.get("only_sm")), **rest)


def _range(values: list[int] | None) -> Range | None:
    return (values[0], values[1]) if values else None


def _within(sm: int, limits: Range | None) -> bool:
    return limits is not None and limits[0] <= sm <= limits[1]
