"""Sizes of a decoder-only model from its `config.json`, whatever the family calls them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from builder.checkpoint.families import defaults_of
from builder.checkpoint.values import count_of

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads", "attention_heads"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim", "head_size"),
    "max_positions": ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "seq_length", "n_ctx"),
    "intermediate_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "dim_ff", "dff", "ffn_config.ffn_hidden_size"),
    "moe_intermediate_size": ("moe_intermediate_size", "expert_ffn_hidden_size"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "ffn_config.moe_num_experts", "moe.num_experts"),
    "experts_per_token": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_k",
        "moe_top_k",
        "ffn_config.moe_top_k",
        "moe.top_k",
    ),
    "kv_lora_rank": ("kv_lora_rank",),
    "rope_head_dim": ("qk_rope_head_dim",),
    "nope_head_dim": ("qk_nope_head_dim",),
}
"""What decoder-only configurations call each size, the usual name first; a point leads into a nested object."""

TEXT_CONFIGS = ("text_config", "language_config", "llm_config")
"""Where a model of several parts keeps its language model."""

ONE_KV_HEAD = "multi_query"
"""True in families whose heads share one key and value (gpt_bigcode, falcon), whatever else the file says ..."""
GROUPED_AFTER_ALL = "new_decoder_architecture"
"""... unless this is true too (falcon 40B and 180B)."""

MLP_RATIO = 4
"""Inner over outer width of the MLP in the families whose configuration names no inner width (gpt2, gptj, bloom, falcon)."""


class SizeError(Exception):
    """A size is missing or no positive whole number; `names` are its spellings, `found` what stands there."""

    def __init__(self, names: tuple[str, ...], found: str) -> None:
        super().__init__(f"no usable {' or '.join(names)}: {found}")
        self.names, self.found = names, found


@dataclass(frozen=True)
class Geometry:
    """Counts; `head_dim` numbers a head, `max_positions` tokens. `tied` is None where neither file nor family says it."""

    vocab_size: int
    layers: int
    kv_heads: int
    head_dim: int
    max_positions: int
    heads: int = 0
    hidden_size: int = 0
    intermediate_size: int = 0
    expert_intermediate_size: int = 0
    experts: int = 0
    experts_per_token: int = 0
    kv_lora_rank: int = 0
    rope_head_dim: int = 0
    tied: bool | None = None


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a configuration."""
    return next((config[name] for name in TEXT_CONFIGS if isinstance(config.get(name), Mapping) and config[name]), config)


def read_geometry(config: Mapping[str, Any]) -> Geometry:
    """Raises SizeError. The text model's sizes when the file describes several models; what it leaves out, its family's class says."""
    text = text_config(config)
    sizes = _Sizes(text, defaults_of(_text_type(config, text)))
    heads, hidden = sizes.needed("heads"), sizes.needed("hidden_size")
    rank, rope = sizes.optional("kv_lora_rank"), sizes.optional("rope_head_dim")
    experts = 0 if text.get("is_moe") is False else sizes.optional("experts")
    intermediate = sizes.optional("intermediate_size") or (count_of(text.get("expansion_ratio")) or MLP_RATIO) * hidden
    return Geometry(
        vocab_size=sizes.needed("vocab_size"),
        layers=sizes.needed("layers"),
        kv_heads=_kv_heads(sizes, heads),
        head_dim=rope + sizes.optional("nope_head_dim") if rank else sizes.optional("head_dim") or hidden // heads,
        max_positions=sizes.needed("max_positions"),
        heads=heads,
        hidden_size=hidden,
        intermediate_size=intermediate,
        expert_intermediate_size=(sizes.optional("moe_intermediate_size") or intermediate) if experts else 0,
        experts=experts,
        experts_per_token=sizes.optional("experts_per_token") if experts else 0,
        kv_lora_rank=rank,
        rope_head_dim=rope if rank else 0,
        tied=_tied(config, text, sizes.defaults),
    )


@dataclass(frozen=True)
class _Sizes:
    text: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def needed(self, size: str) -> int:
        found = self.optional(size)
        if not found:
            names = SPELLINGS[size]
            raise SizeError(names, ", ".join(repr(at(self.text, name)) for name in names))
        return found

    def optional(self, size: str) -> int:
        """0 where the file says nothing usable. The default counts only where the file does not name the size at all."""
        values = [at(self.text, name, missing=...) for name in SPELLINGS[size]]
        found = next((count for count in map(_count, values) if count), 0)
        if found or any(value is not ... for value in values):
            return found
        return _count(self.defaults.get(size))


def _text_type(config: Mapping[str, Any], text: Mapping[str, Any]) -> str:
    own = str(text.get("model_type") or "")
    whole = str(config.get("model_type") or "")
    return own or (f"{whole}_text" if text is not config else whole)


def _kv_heads(sizes: _Sizes, heads: int) -> int:
    merged = {**sizes.defaults, **sizes.text}
    if merged.get(ONE_KV_HEAD) and not merged.get(GROUPED_AFTER_ALL):
        return 1
    return sizes.optional("kv_heads") or heads


def _tied(config: Mapping[str, Any], text: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool | None:
    for source, name in ((config, "tie_word_embeddings"), (text, "tie_word_embeddings"), (defaults, "tied")):
        if isinstance(source.get(name), bool):
            return bool(source[name])
    return None


def _count(value: Any) -> int:
    """The largest where each layer has its own; text is no size."""
    values = value if isinstance(value, list) else [value]
    return max((count_of(v) for v in values if type(v) is int), default=0)


def at(text: Mapping[str, Any], name: str, missing: Any = None) -> Any:
    """The value under a name whose points lead into nested objects."""
    value: Any = text
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return missing
        value = value[part]
    return value
