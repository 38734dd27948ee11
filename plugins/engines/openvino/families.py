"""Which models this lane runs, decided from `config.json` alone; `families.yaml` lists the families by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ATTENTION_LAYERS = ("full_attention", "sliding_attention")
_RECURRENT_KEYS = (
    "conv_kernel",
    "layers_block_type",
    "linear_attn_config",
    "linear_num_key_heads",
    "mamba_d_state",
    "ssm_cfg",
    "state_size",
)
_OTHER_MODALITIES = ("audio_config", "vision_config")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")


@dataclass(frozen=True)
class Families:
    """`tried`: families that are known to work. `refused`: family to the reason, a clause whose subject is the model."""

    tried: frozenset[str]
    refused: Mapping[str, str]


@cache
def families() -> Families:
    """What `families.yaml` says."""
    content = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    refused = {family: reason for reason, names in content["refused"].items() for family in names}
    return Families(frozenset(content["tried"]), refused)


def refusal(config: Mapping[str, Any]) -> str:
    """Why a model cannot run, a clause whose subject is the model; empty when nothing speaks against it."""
    return next(_refusals(config), "")


def _refusals(config: Mapping[str, Any]) -> Iterator[str]:
    kind = str(config.get("model_type") or "")
    if not kind:
        yield "config.json names no model_type"
    if kind in families().refused:
        yield families().refused[kind]
    if config.get("is_encoder_decoder"):
        yield "it is an encoder-decoder model"
    if config.get("kv_lora_rank"):
        yield "its cache is latent (MLA)"
    if any(config.get(key) for key in _RECURRENT_KEYS):
        yield "it has recurrent layers"
    if any(key in config for key in _OTHER_MODALITIES):
        yield "it is multimodal"
    if "auto_map" in config:
        yield "its code is not part of transformers (auto_map)"
    if not any(config.get(key) for key in _HEADS):
        yield "it does not say how many attention heads it has"
    if others := sorted(set(config.get("layer_types") or ()) - set(ATTENTION_LAYERS)):
        yield f"it has layers of other kinds ({', '.join(others)})"
