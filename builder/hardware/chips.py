"""Chips: one row of `configs/chips.yaml` each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from builder.errors import RefusedError
from builder.hardware.chip_names import near_names

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader, in C where it is there: ten times as fast."""


@dataclass(frozen=True)
class Chip:
    """What a chip can do, by its makers and by measurement.

    `compute_capability` in CUDA's form (9.0), "" for a processor; rates are dense, without sparsity, in operations a second by number
    format; `memory_bytes` 0 where it is the host's. `certainty` says how sure the row is: published, measured or inferred.
    """

    name: str
    title: str
    family: str
    compute_capability: str
    memory_bytes: int
    bandwidth_bytes_per_s: float
    peak_ops_per_s: Mapping[str, float]
    link_bytes_per_s: float = 0.0
    certainty: str = "published"
    sources: tuple[str, ...] = field(default_factory=tuple)

    @property
    def sm(self) -> int:
        """Compute capability as one number (90 for 9.0), 0 for a processor."""
        return int(self.compute_capability.replace(".", "") or 0)


@cache
def chips() -> Mapping[str, Chip]:
    """Every known chip by name."""
    text = files("configs").joinpath("chips.yaml").read_text(encoding="utf-8")
    rows = yaml.load(text, Loader=LOADER)["chips"]  # noqa: S506
    return {name: _chip(name, row) for name, row in rows.items()}


def find_chip(name: str, field: str = "hardware.chip") -> Chip:
    """Raises RefusedError CHIP-UNKNOWN, with the nearest known names."""
    known = chips()
    if name in known:
        return known[name]
    near = any_of(near_names(name, tuple(known)))
    hint = f"; did you mean {near}?" if near else ""
    fix = f"write {near}" if near else "take one of the known chips, or add a row to configs/chips.yaml"
    raise RefusedError("CHIP-UNKNOWN", f"no chip is called {name}{hint}", field=field, found=name, needed=" | ".join(known), fix=fix)


def any_of(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _chip(name: str, row: Mapping[str, Any]) -> Chip:
    return Chip(**{**row, "name": name, "compute_capability": str(row["compute_capability"]), "sources": tuple(row["sources"])})
