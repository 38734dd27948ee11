"""A plan's figures in words, for people: which are worth a row, what they are called, in what unit they are read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builder.planner.difference import Change

BYTES, TIME, RATE, COUNT, FACTOR, SHARE, WORD, PRICE = "bytes", "time", "rate", "count", "factor", "share", "word", "price"
GROWING = {BYTES, TIME, RATE, PRICE}
"""Kinds whose growth is told in percent; a count is read as it is."""

_STEP = {
    "plain_tokens_per_s": ("tokens/s without drafts", RATE),
    "speculative_tokens_per_s": ("tokens/s with drafts", RATE),
    "speedup": ("speed-up", FACTOR),
    "draft_tokens": ("best draft length", COUNT),
    "break_even_acceptance": ("acceptance that drafting needs", SHARE),
    "cycle_s": ("one round of drafts", TIME),
    "target_step_s": ("one step of the target", TIME),
    "verify_s": ("one verification", TIME),
    "draft_step_s": ("one step of the draft", TIME),
}
_POINT = {
    "plain_tokens_per_chip_hour": ("tokens a chip and hour without drafts", RATE),
    "speculative_tokens_per_chip_hour": ("tokens a chip and hour with drafts", RATE),
    "plain_per_million": ("price of a million tokens without drafts", PRICE),
    "speculative_per_million": ("price of a million tokens with drafts", PRICE),
}
_MODEL = {
    "weights_bytes": ("weights of the {}", BYTES),
    "pool_bytes": ("cache of the {}", BYTES),
    "pool_tokens": ("tokens in the cache of the {}", COUNT),
    "kv_bytes_per_token": ("cache of one token of the {}", BYTES),
    "activation_bytes": ("activations of the {}", BYTES),
    "total_bytes": ("the {} in all, on one chip", BYTES),
    "kv_cache": ("cache type of the {}", WORD),
}
_ROOM = {"sequences": ("sequences that fit", COUNT)}
_PLAIN = {
    "memory": {
        "device.memory_bytes": ("memory of a chip", BYTES),
        "device.used_bytes": ("memory in use on a chip", BYTES),
        "device.reserve_bytes": ("memory kept free on a chip", BYTES),
        "device.count": ("chips", COUNT),
        "device.chip": ("chip", WORD),
        "needed_tokens": ("tokens of cache that a full batch needs", COUNT),
        "build.host_memory_bytes": ("host memory for the build", BYTES),
        "build.disk_bytes": ("disk for the build", BYTES),
        "build.device_memory_bytes": ("chip memory for the build", BYTES),
        "build.chip_count": ("chips for the build", COUNT),
    },
    "speed": {
        "provider": ("step times from", WORD),
        "acceptance.value": ("acceptance", SHARE),
        "acceptance.source": ("acceptance is", WORD),
        "stop_batch": ("drafts pay up to batch", COUNT),
        "error_band": ("error band of the step times", SHARE),
    },
    "cost": {"chip_count": ("chips", COUNT)},
}
_TABLES: Mapping[str, Sequence[tuple[re.Pattern[str], str, Mapping[str, tuple[str, str]]]]] = {
    "memory": (
        (re.compile(r"(target|draft)$"), "{}", _MODEL),
        (re.compile(r"capacity\[context_tokens (\d+)\]$"), "{} tokens each: ", _ROOM),
    ),
    "speed": ((re.compile(r"rows\[batch (\d+)\]$"), "batch {}: ", _STEP), (re.compile(r"(saturation)$"), "full batch: ", _STEP)),
    "cost": ((re.compile(r"points\[load (.+)\]$"), "{}: ", _POINT),),
}
"""For each section: rows of a table, what stands before their figures, and the figures."""


def people_rows(section: str, changes: Sequence[Change]) -> list[tuple[str, str, str, str]]:
    """Name, old value, new value, growth of the figures that people are shown; a row that only one side has by each of its figures."""
    rows = []
    for change in (part for whole in changes for part in _leaves(whole)):
        named = _named(section, change.field)
        if named:
            name, kind = named
            share = growth(change)
            if share is None or abs(share) >= SMALL:
                told = "" if share is None or kind not in GROWING else f"{share:+.1%}"
                rows.append((name, _value(kind, change.old), _value(kind, change.new), told))
    return [row for row in rows if row[1] != row[2]]


SMALL = 0.01
"""A smaller growth of a figure is not worth a row."""


def growth(change: Change) -> float | None:
    """How much a number grew, as a share of the old one; None for what is no number."""
    old, new = (v if isinstance(v, int | float) and not isinstance(v, bool) else None for v in (change.old, change.new))
    return new / old - 1 if old and new is not None else None


def _leaves(change: Change) -> Iterator[Change]:
    old, new = (value if isinstance(value, Mapping) else {} for value in (change.old, change.new))
    if not old and not new:
        yield change
        return
    for name in dict.fromkeys((*old, *new)):
        yield Change(f"{change.field}.{name}", old.get(name), new.get(name))


def _named(section: str, field: str) -> tuple[str, str] | None:
    plain = _PLAIN.get(section, {}).get(field)
    if plain:
        return plain
    place, _, leaf = field.rpartition(".")
    for pattern, before, figures in _TABLES.get(section, ()):
        found = pattern.match(place)
        if found and leaf in figures:
            words, kind = figures[leaf]
            return (words.format(found[1]) if figures is _MODEL else before.format(found[1]) + words), kind
    return None


def _value(kind: str, value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return "none" if not value else "several"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return str(_FORMS[kind](value))


def _bytes(value: float) -> str:
    return f"{value / 1e9:,.2f} GB" if value >= 1e9 else f"{value / 1e6:,.1f} MB" if value >= 1e5 else f"{value:,.0f} bytes"


_FORMS: Mapping[str, Any] = {
    BYTES: _bytes,
    TIME: lambda value: f"{value * 1e3:,.2f} ms",
    RATE: lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.1f}",
    COUNT: lambda value: f"{value:,}",
    FACTOR: lambda value: f"{value:.2f}x",
    SHARE: lambda value: f"{value:.2f}",
    PRICE: lambda value: f"{value:.2f}",
    WORD: str,
}
