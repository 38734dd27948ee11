"""What a checkpoint folder says of its own quantization, in the pair file's words. Small files only."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.api import EngineRequest

UNQUANTIZED_KV = "bf16"
WEIGHT_WORDS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8",
    "FP8_BLOCK_SCALES": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_AWQ": "int4_awq",
    "W4A16": "int4",
    "W8A16": "int8",
    "W8A8_SQ_PER_CHANNEL": "int8_sq",
}
"""TensorRT-LLM's quant_algo -> the pair file's weights."""
KV_WORDS = {"FP8": "fp8", "INT8": "int8", "NVFP4": "nvfp4"}
"""TensorRT-LLM's kv_cache_quant_algo -> the pair file's kv_cache."""


def kv_cache_word(request: EngineRequest) -> str:
    """What the engine's cache will hold: the pair file's word, or for auto what the checkpoint says, or else 16 bits."""
    if request.kv_cache != "auto":
        return request.kv_cache
    return stored_kv_cache(request.checkpoint) or UNQUANTIZED_KV


def stored_weights(checkpoint: Path) -> str:
    """The weights that the checkpoint stores, "none" when it is not quantized or says something that the pair file has no word for."""
    return WEIGHT_WORDS.get(str(_quantization(checkpoint).get("quant_algo") or ""), "none")


def stored_kv_cache(checkpoint: Path) -> str:
    """The cache precision that the checkpoint was calibrated for, "" for none."""
    return KV_WORDS.get(str(_quantization(checkpoint).get("kv_cache_quant_algo") or ""), "")


def _quantization(checkpoint: Path) -> Mapping[str, Any]:
    """ModelOpt's file, or the section that TensorRT-LLM's own checkpoints and newer exports have in config.json."""
    for name, keys in (("hf_quant_config.json", ("quantization",)), ("config.json", ("quantization", "quantization_config"))):
        content = _read(checkpoint / name)
        for key in keys:
            found = content.get(key)
            if isinstance(found, Mapping):
                return found
    return {}


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, Mapping) else {}
