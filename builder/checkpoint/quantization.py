"""How a Hugging Face folder stores its weights, in TensorRT-LLM's words."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builder.api.model import StoredFormat
from builder.checkpoint.geometry import text_config
from builder.checkpoint.values import count_of, mapping_of, parse_json
from builder.errors import Finding, Severity

MODELOPT_FILE = "hf_quant_config.json"
LAYERS_FILE = "quant_cfg.json"
SECTIONS = ("quantization_config", "compression_config")
KEPT = ("quant_method", "bits", "group_size", "desc_act", "zero_point", "version", "format", "activation_scheme", "bnb_4bit_quant_type")
"""Fields of a quantization section that go into the details."""
SMALL_FILES: tuple[tuple[str, Severity, str], ...] = (
    ("generation_config.json", "warning", "where an answer ends is taken from config.json alone"),
    (MODELOPT_FILE, "error", "how the weights are stored is not known"),
    (LAYERS_FILE, "error", "how the weights of each layer are stored is not known"),
)
"""Files that may be missing, and what follows where one is broken."""
FOUR_BITS = ("NVFP4", "W4", "MXFP4", "4BIT", "MIXED_PRECISION")


def read_format(folder: Path, config: Mapping[str, Any]) -> StoredFormat:
    """From config.json's quantization section, and from hf_quant_config.json where modelopt wrote one."""
    section = _section(config)
    exported = read_object(folder / MODELOPT_FILE)
    if exported or str(section.get("quant_method", "")).startswith("modelopt"):
        return _modelopt(section, exported, read_object(folder / LAYERS_FILE))
    details = {name: str(section[name]) for name in KEPT if section.get(name) is not None}
    if not section:
        return StoredFormat()
    return StoredFormat("huggingface", _weights_word(section), _cache_word(section.get("kv_cache_scheme")), details=details)


def bits_of(stored: StoredFormat) -> int:
    """Bits of one packed weight; 16 where nothing is packed."""
    four = any(word in stored.weights for word in FOUR_BITS)
    return count_of(stored.details.get("bits")) or (4 if four else 8 if stored.weights else 16)


def check_agreement(folder: Path, config: Mapping[str, Any], field: str) -> Iterator[Finding]:
    """The files that speak of quantization must say the same of weights and cache."""
    exported = mapping_of(read_object(folder / MODELOPT_FILE).get("quantization"))
    said = {MODELOPT_FILE: (exported.get("quant_algo"), exported.get("kv_cache_quant_algo"))} if exported else {}
    section = _section(config)
    if section.get("quant_method") == "modelopt" and exported:
        scheme = section.get("kv_cache_scheme")
        said["config.json"] = (section.get("quant_algo"), _cache_word(scheme) or section.get("kv_cache_quant_algo"))
    layers = read_object(folder / LAYERS_FILE)
    if layers and exported.get("quant_algo") == "MIXED_PRECISION":
        said[LAYERS_FILE] = ("MIXED_PRECISION", layers.get("kv_cache_quant_algo"))
    words = {file: tuple(str(word or "none") for word in pair) for file, pair in said.items()}
    if len(set(words.values())) > 1:
        text = "; ".join(f"{file}: weights {weights}, cache {cache}" for file, (weights, cache) in words.items())
        message = f"The checkpoint's files disagree on its quantization ({text}); TensorRT-LLM stops at this."
        yield Finding("CKPT-QUANT-DISAGREES", "error", message, field, text, "one quantization", "export the model with modelopt again")


def check_files(folder: Path, field: str) -> Iterator[Finding]:
    """Small files beside config.json that are there and say nothing, because they are no JSON."""
    for name, severity, consequence in SMALL_FILES:
        try:
            data = parse_json((folder / name).read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reason = str(error)
        else:
            if isinstance(data, dict):
                continue
            reason = "it holds no object"
        message = f"{name} cannot be read ({reason}): {consequence}."
        yield Finding("CKPT-SMALL-FILE", severity, message, field, reason, "a JSON object", f"fetch {name} again")


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object; {} when the file is not there or holds none."""
    try:
        data = parse_json(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _section(config: Mapping[str, Any]) -> Mapping[str, Any]:
    for holder in (config, text_config(config)):
        for name in SECTIONS:
            if isinstance(holder.get(name), Mapping):
                section: Mapping[str, Any] = holder[name]
                return section
    return {}


def _modelopt(section: Mapping[str, Any], exported: Mapping[str, Any], layers: Mapping[str, Any]) -> StoredFormat:
    inner = mapping_of(exported.get("quantization")) or section
    producer = mapping_of(exported.get("producer")) or mapping_of(section.get("producer"))
    details = (
        {"producer": f"{producer.get('name', 'modelopt')} {producer.get('version', '')}".strip()} if isinstance(producer, Mapping) else {}
    )
    if inner.get("group_size"):
        details["group_size"] = str(inner["group_size"])
    by_layer = mapping_of(inner.get("quantized_layers")) or mapping_of(layers.get("quantized_layers"))
    algorithms = sorted({str(one.get("quant_algo")) for one in by_layer.values() if isinstance(one, Mapping) and one.get("quant_algo")})
    if algorithms:
        details["layers"] = ", ".join(algorithms)
    cache = inner.get("kv_cache_quant_algo") or _cache_word(section.get("kv_cache_scheme"))
    return StoredFormat("modelopt", str(inner.get("quant_algo") or ""), str(cache or ""), details=details)


def _weights_word(section: Mapping[str, Any]) -> str:
    method, bits = str(section.get("quant_method", "")), count_of(section.get("bits"))
    if method == "fp8":
        return "FP8_BLOCK_SCALES" if section.get("weight_block_size") else "FP8"
    if method == "compressed-tensors" or "config_groups" in section:
        return _compressed_word(section)
    words = {
        "awq": "W4A16_AWQ",
        "gptq": f"W{bits or 4}A16_GPTQ",
        "fbgemm_fp8": "FP8_PER_CHANNEL_PER_TOKEN",
        "mxfp4": "W4A16_MXFP4",
        "bitsandbytes": "BITSANDBYTES_4BIT" if section.get("load_in_4bit") or section.get("_load_in_4bit") else "BITSANDBYTES_8BIT",
    }
    # a method that TensorRT-LLM has no word for keeps its own, so that a lane can refuse it by name
    return words.get(method, method.upper().replace("-", "_") or "UNKNOWN")


def _compressed_word(section: Mapping[str, Any]) -> str:
    """By the first group's weights and input activations."""
    group: Mapping[str, Any] = next((g for g in mapping_of(section.get("config_groups")).values() if isinstance(g, Mapping)), {})
    weights, inputs = mapping_of(group.get("weights")), mapping_of(group.get("input_activations"))
    bits, strategy = count_of(weights.get("num_bits")), str(weights.get("strategy", ""))
    if weights.get("type") == "float":
        if bits == 4:
            return "NVFP4" if count_of(inputs.get("num_bits")) == 4 else "W4A16_NVFP4"
        return {"block": "FP8_BLOCK_SCALES", "channel": "FP8_PER_CHANNEL_PER_TOKEN"}.get(strategy, "FP8")
    if inputs and bits == 8:
        return "W8A8_SQ_PER_CHANNEL"
    return f"W{bits}A16" if bits else "COMPRESSED_TENSORS"


def _cache_word(scheme: Any) -> str:
    if isinstance(scheme, str):
        return scheme.upper()
    if not isinstance(scheme, Mapping):
        return ""
    bits = count_of(scheme.get("num_bits"))
    return {(8, "float"): "FP8", (8, "int"): "INT8", (4, "float"): "NVFP4"}.get((bits, str(scheme.get("type"))), "")
