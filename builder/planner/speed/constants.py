"""Constants of the speed prediction: `configs/speed.yaml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@dataclass(frozen=True)
class Roofline:
    """What a chip family reaches of its published rates; times in seconds."""

    bandwidth_share: float
    rate_share: float
    layer_s: float
    all_reduce_s: float
    stage_s: float
    step_s: float
    overlap_power: float
    products: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Overheads:
    """Time beside the kernels: for each draft step and for each cycle. `source` says where the figures come from."""

    draft_step_s: float
    cycle_s: float
    source: str
    certainty: str = "measured"


@cache
def constants() -> Mapping[str, Any]:
    """The file's content."""
    data: Mapping[str, Any] = yaml.safe_load(files("configs").joinpath("speed.yaml").read_text(encoding="utf-8"))
    return data


def roofline_of(family: str) -> Roofline:
    """Constants of a chip family; those that it does not state are the default's."""
    rows = constants()["roofline"]
    row = {**rows["default"], **rows.get(family, {})}
    return Roofline(**{name: row[name] for name in Roofline.__dataclass_fields__})


def overheads_of(engine_kind: str, *, lookup_only: bool) -> Overheads:
    """Overheads of an engine lane, with a draft model or with prompt lookup alone."""
    rows = constants()["overheads"]
    row = rows.get(engine_kind, rows["default"])
    if lookup_only:
        return Overheads(0.0, row["lookup_cycle_s"], row["source"], row["certainty"])
    return Overheads(row["draft_step_s"], row["cycle_s"], row["source"], row["certainty"])


def error_band(provider: str, weights: str = "") -> float:
    """Share by which a provider's step times may be off; weights that it knows less of have their own."""
    bands = constants()["error_bands"]
    return float(bands.get(f"{provider} {weights}", bands[provider]))


def speedup_error_band(rates_band: float, *, calibrated: bool) -> float:
    """Share by which speed-ups may be off, from rates that may be off by `rates_band`: in a ratio most of that is divided out."""
    bands = constants()["speedup_error_bands"]
    return float(bands["calibrated"] if calibrated else min(max(rates_band, bands["uncalibrated"]), bands["widest"]))


def assumed_acceptance(method: str) -> tuple[float, str]:
    """Acceptance of drafts that nobody measured, and what is known of its spread ("" where there is nothing to add)."""
    row = constants()["acceptance"]["ngram" if method == "ngram" else "draft_target"]
    return float(row["value"]), str(row["spread"])
