"""Rotary position embeddings, in every spelling that config.json has had for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from builder.checkpoint.families import defaults_of
from builder.checkpoint.geometry import text_config
from builder.checkpoint.values import count_of, is_number
from builder.errors import Finding

SCALINGS = ("rope_parameters", "rope_scaling", "rotary_scaling")
BASES = ("rope_theta", "rotary_base", "rotary_emb_base")
FACTORS = ("factor", "low_freq_factor", "high_freq_factor")
SHARES = ("partial_rotary_factor", "rotary_pct")
ORIGINAL = "original_max_position_embeddings"
LOCAL_BASES = {"rope_local_base_freq": "sliding_attention", "local_rope_theta": "sliding_attention", "global_rope_theta": "full_attention"}
"""Fields that name the base of one kind of layer (gemma3, modernbert)."""
FULL = "full_attention"
MOST_FACTOR = 1e6
"""Far above every model's (64 is the largest that is known)."""
NOT_FIELDS = {"rope_type", "type", "rope_theta"}


@dataclass(frozen=True)
class Rope:
    """`kind` is transformers' `rope_type`; `theta` the base; `fields` every other number of the kind, by transformers' names.

    `layers` holds one of these for each kind of layer in families where they differ; then the outer values are those of full attention.
    """

    kind: str = "default"
    theta: float = 10_000.0
    fields: Mapping[str, Any] = field(default_factory=dict)
    layers: Mapping[str, "Rope"] = field(default_factory=dict)


@cache
def _data() -> Mapping[str, Any]:
    text = files("builder.checkpoint").joinpath("ropes.yaml").read_text(encoding="utf-8")
    data: Mapping[str, Any] = yaml.safe_load(text)
    return data


def read_rope(config: Mapping[str, Any]) -> Rope | None:
    """None where neither file nor family speaks of rotary embeddings. Never raises: `check_rope` says what is wrong."""
    text = text_config(config)
    defaults = defaults_of(text.get("model_type"))
    scaling: Mapping[str, Any] = next((text[name] for name in SCALINGS if isinstance(text.get(name), Mapping)), {})
    theta = next((float(text[name]) for name in BASES if is_number(text.get(name))), defaults.get("rope_theta"))
    by_layer = {kind: value for kind, value in scaling.items() if isinstance(value, Mapping)}
    bases = _bases(text, defaults)
    if not by_layer and bases:
        by_layer = {kind: {"rope_theta": base} for kind, base in bases.items()}
        main = FULL if FULL in bases else next(iter(bases))
        by_layer[main] = {**by_layer[main], **({"rope_theta": theta} if theta else {}), **scaling}
    if by_layer:
        ropes = {kind: _rope(value, bases.get(kind, theta), text) for kind, value in by_layer.items()}
        outer = ropes.get(FULL) or next(iter(ropes.values()))
        return Rope(outer.kind, outer.theta, outer.fields, ropes)
    return _rope(scaling, theta, text) if scaling or theta else None


def _bases(text: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, float | None]:
    """The base of each kind of layer, as the family and older files' fields have it; None: the file's common one."""
    local = {LOCAL_BASES[name]: float(text[name]) for name in LOCAL_BASES if is_number(text.get(name))}
    return {**({FULL: None} if local else {}), **defaults.get("rope_layers", {}), **local}


def _rope(scaling: Mapping[str, Any], theta: float | None, text: Mapping[str, Any]) -> Rope:
    word = str(scaling.get("rope_type") or scaling.get("type") or "default")
    kind = _data()["renamed"].get(word, word)
    fields = {name: value for name, value in scaling.items() if name not in NOT_FIELDS and not isinstance(value, Mapping | None)}
    if _data()["kinds"].get(kind, {}).get("original"):
        # phi3 keeps it outside, and there it wins
        fields[ORIGINAL] = text.get(ORIGINAL) or fields.get(ORIGINAL) or text.get("max_position_embeddings")
    share = next((text[name] for name in SHARES if is_number(text.get(name))), None)
    if share is not None:
        fields.setdefault("partial_rotary_factor", share)
    return Rope(kind, _base(scaling.get("rope_theta")) or theta or Rope.theta, fields)


def _base(value: object) -> float:
    return float(value) if isinstance(value, int | float) and is_number(value) else 0.0


def check_rope(rope: Rope | None, field: str) -> Iterator[Finding]:
    """An unknown kind is refused by name; so is a kind without its numbers."""
    for one in _each(rope):
        known = _data()["kinds"]
        if one.kind not in known:
            message = f"config.json asks for rotary embeddings of the kind {one.kind!r}, which neither transformers nor TensorRT-LLM knows."
            fix = "correct rope_type in config.json to what the model was trained with"
            yield Finding("CKPT-ROPE", "error", message, field, one.kind, " | ".join(known), fix)
            continue
        missing = [name for name in known[one.kind]["needs"] if name not in one.fields]
        if missing:
            message = f"config.json asks for rotary embeddings of the kind {one.kind} and leaves out {' and '.join(missing)}."
            fix = "copy rope_scaling from the model's own config.json"
            yield Finding("CKPT-ROPE", "error", message, field, ", ".join(sorted(one.fields)) or "nothing", ", ".join(missing), fix)
        yield from _odd_factors(one, field)


def _odd_factors(rope: Rope, field: str) -> Iterator[Finding]:
    """Factors that nothing can be multiplied with."""
    for name in FACTORS:
        value = rope.fields.get(name)
        if name in rope.fields and not _is_factor(value):
            found = repr(value)[:80]
            message = f"config.json asks for rotary embeddings of the kind {rope.kind} with {name} {found}, which is no factor."
            fix = "copy rope_scaling from the model's own config.json"
            yield Finding("CKPT-ROPE", "error", message, field, found, f"a number above 0, at most {MOST_FACTOR:.0f}", fix)


def _is_factor(value: Any) -> bool:
    return is_number(value) and 0 < value <= MOST_FACTOR


def most_positions(rope: Rope | None, max_positions: int) -> int:
    """Positions that the model reaches: YaRN's files may keep the number before scaling in max_position_embeddings."""
    if rope is None or rope.kind != "yarn":
        return max_positions
    original, factor = count_of(rope.fields.get(ORIGINAL)), rope.fields.get("factor")
    return max(max_positions, int(original * factor)) if factor is not None and _is_factor(factor) else max_positions


def _each(rope: Rope | None) -> tuple[Rope, ...]:
    if rope is None:
        return ()
    return tuple(rope.layers.values()) or (rope,)
