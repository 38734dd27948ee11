"""Sizes of a decoder-only model from its `config.json`, whatever the family calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "max_positions": ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "seq_length", "n_ctx"),
}
"""What transformers' decoder-only configurations call each size, the usual name first; a point leads into a nested object."""

ONE_KV_HEAD = "multi_query"
"""True in families whose heads share one key and value (gpt_bigcode, falcon), whatever else the file says ..."""
GROUPED_AFTER_ALL = "new_decoder_architecture"
"""... unless this is true too (falcon 40B and 180B)."""


class SizeError(Exception):
    """A size is missing or no positive whole number; `names` are its spellings, `found` what stands there."""

    def __init__(self, names: tuple[str, ...], found: str) -> None:
        super().__init__(f"no usable {' or '.join(names)}: {found}")
        self.names, self.found = names, found


@dataclass(frozen=True)
class Geometry:
    """Counts; `head_dim` numbers a head, `max_positions` tokens."""

    vocab_size: int
    layers: int
    kv_heads: int
    head_dim: int
    max_positions: int


def read_geometry(config: Mapping[str, Any]) -> Geometry:
    """Raises SizeError. The text model's sizes when the file describes several models."""
    text = config.get("text_config") or config
    heads = _size(text, "heads")
    return Geometry(
        vocab_size=_size(text, "vocab_size"),
        layers=_size(text, "layers"),
        kv_heads=_kv_heads(text, heads),
        head_dim=_optional(text, "head_dim") or _size(text, "hidden_size") // heads,
        max_positions=_size(text, "max_positions"),
    )


def _kv_heads(text: Mapping[str, Any], heads: int) -> int:
    if text.get(ONE_KV_HEAD) and not text.get(GROUPED_AFTER_ALL):
        return 1
    return _optional(text, "kv_heads") or heads


def _optional(text: Mapping[str, Any], size: str) -> int | None:
    values = (_at(text, name) for name in SPELLINGS[size])
    return next((value for value in values if type(value) is int and value > 0), None)


def _size(text: Mapping[str, Any], size: str) -> int:
    found = _optional(text, size)
    if found is None:
        names = SPELLINGS[size]
        raise SizeError(names, ", ".join(repr(_at(text, name)) for name in names))
    return found


def _at(text: Mapping[str, Any], name: str) -> Any:
    value: Any = text
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
