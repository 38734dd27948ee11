"""What this lane refuses, decided from `config.json` and the request alone."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from builder.api import EngineRequest, Finding
from plugins.engines.openvino.kv_cache import WORDS as KV_WORDS
from plugins.engines.openvino.record import TOKENS_PER_BLOCK

WEIGHTS = ("none", "int8", "int4")
OPTIONS = ("exact_draft", "group_size", "ratio")
"""`exact_draft` bool (true): whether the draft, too, answers the same however tokens are grouped; targets always do. `group_size` int (64)
and `ratio` 0..1 (0.8) for int4 weights."""

_MLA_TYPES = ("deepseek_v2", "deepseek_v3", "kimi_k2", "longcat_flash", "minicpm3")
_OWN_ATTENTION_TYPES = ("bloom", "codegen", "falcon", "gptj", "mpt")
_ATTENTION_TYPES = ("full_attention", "sliding_attention")
_FROZEN_ROPE = ("dynamic", "longrope", "yarn_dynamic")
_Findings = Iterator[Finding]


def check(request: EngineRequest) -> list[Finding]:
    """Every refusal at once; empty when this lane can build the engine."""
    findings = [*_check_words(request), *_check_limits(request), *_check_options(request)]
    path = request.checkpoint / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message, fix = f"{path} cannot be read: {error}", "point checkpoint at a Hugging Face model folder"
        return [*findings, _refusal("ENGINE-CONFIG", message, f"{request.role}.checkpoint", path, "a readable config.json", fix)]
    return [*findings, *_check_architecture(config), *_check_attention(config), *_check_length(config, request)]


def _refusal(code: str, message: str, field: str, found: object, needed: str, fix: str) -> Finding:
    return Finding(code, "error", message, field, str(found), needed, fix)


def _check_words(request: EngineRequest) -> _Findings:
    role = request.role
    if request.weights not in WEIGHTS:
        message = f"The CPU engine has no {request.weights} weights."
        fix = f"set {role}.weights to int8, or choose a lane that has {request.weights}"
        yield _refusal("ENGINE-WEIGHTS", message, f"{role}.weights", request.weights, " | ".join(WEIGHTS), fix)
    if request.kv_cache not in KV_WORDS:
        message = f"OpenVINO's paged attention on CPU keeps no {request.kv_cache} cache."
        fix = f"set {role}.kv_cache to auto (int8)"
        yield _refusal("ENGINE-KV-DTYPE", message, f"{role}.kv_cache", request.kv_cache, " | ".join(KV_WORDS), fix)
    if request.tokens_per_block != TOKENS_PER_BLOCK:
        message = f"OpenVINO's paged attention on CPU has blocks of {TOKENS_PER_BLOCK} tokens."
        fix = f"set kv_cache.tokens_per_block to {TOKENS_PER_BLOCK}"
        found = request.tokens_per_block
        yield _refusal("ENGINE-BLOCK-SIZE", message, "kv_cache.tokens_per_block", found, str(TOKENS_PER_BLOCK), fix)


def _check_limits(request: EngineRequest) -> _Findings:
    needed = max(2, request.max_draft_tokens + 1)
    if request.max_batched_tokens < needed:
        message = "A verification is one pass: the drafts and the token before them must fit in its budget."
        fix = f"set limits.max_batched_tokens to {needed} or more"
        yield _refusal("ENGINE-BATCHED-TOKENS", message, "limits.max_batched_tokens", request.max_batched_tokens, f">= {needed}", fix)


_OPTION_VALUES: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "exact_draft": ("true or false", lambda value: isinstance(value, bool)),
    "group_size": ("a positive whole number", lambda value: type(value) is int and value > 0),
    "ratio": ("a number from 0 to 1", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1),
}


def _check_options(request: EngineRequest) -> _Findings:
    for name in sorted(set(request.options) - set(OPTIONS)):
        message = f"The CPU engine has no option {name}."
        yield _refusal("ENGINE-OPTION", message, f"engine.options.{name}", name, " | ".join(OPTIONS), "remove it")
    for name, (needed, fits) in _OPTION_VALUES.items():
        value = request.options.get(name)
        if value is not None and not fits(value):
            message = f"The option {name} of the CPU engine is {value!r}."
            yield _refusal("ENGINE-OPTION", message, f"engine.options.{name}", value, needed, f"give {needed}")


def _check_architecture(config: Mapping[str, Any]) -> _Findings:
    kind = config.get("model_type", "")
    reason = _unsupported(config)
    if reason:
        message = f"The CPU engine cannot run {kind or 'this model'}: {reason}."
        fix = "use a decoder-only text model with standard attention, or another engine.kind"
        yield _refusal("ENGINE-ARCHITECTURE", message, "model_type", kind, "a decoder-only text model", fix)


def _unsupported(config: Mapping[str, Any]) -> str:
    """Why the model cannot run, empty when nothing speaks against it."""
    other_layers = sorted(set(config.get("layer_types") or ()) - set(_ATTENTION_TYPES))
    reasons = {
        "it is an encoder-decoder model": config.get("is_encoder_decoder"),
        "its cache is latent (MLA)": config.get("kv_lora_rank") or config.get("model_type") in _MLA_TYPES,
        "its attention does not go through transformers' attention interface": config.get("model_type") in _OWN_ATTENTION_TYPES,
        "it is multimodal": "vision_config" in config or "audio_config" in config,
        "its code is not part of transformers (auto_map)": "auto_map" in config,
        "config.json names no model_type": not config.get("model_type"),
        "it does not say how many attention heads it has": not (config.get("num_attention_heads") or config.get("n_head")),
        f"it has layers of other kinds ({', '.join(other_layers)})": other_layers,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _check_attention(config: Mapping[str, Any]) -> _Findings:
    kind = config.get("model_type", "")
    if config.get("attn_logit_softcapping"):
        message = f"{kind} soft-caps its attention scores, which OpenVINO's paged attention does not do."
        found = config["attn_logit_softcapping"]
        yield _refusal("ENGINE-SOFTCAP", message, "attn_logit_softcapping", found, "null", "choose another model or engine.kind")
    if kind == "gpt_oss":
        message = "gpt_oss has attention sinks, which this lane's export does not carry."
        yield _refusal("ENGINE-SINKS", message, "model_type", kind, "a model without sinks", "choose another model or engine.kind")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope_type = rope.get("rope_type", rope.get("type", "default"))
    if rope_type in _FROZEN_ROPE:
        message = f"Rotary embedding of type {rope_type} changes with the length of the sequence; a traced model cannot."
        needed = "default | linear | llama3 | yarn"
        yield _refusal("ENGINE-ROPE", message, "rope_parameters.rope_type", rope_type, needed, "choose another model or engine.kind")


def _check_length(config: Mapping[str, Any], request: EngineRequest) -> _Findings:
    window = _sliding_window(config)
    if window is not None and request.max_sequence_tokens > window:
        message = f"The model attends to a window of {window} tokens in some layers; the CPU engine attends to everything before."
        fix = f"set limits.max_sequence_tokens to {window} or less"
        yield _refusal("ENGINE-SLIDING-WINDOW", message, "limits.max_sequence_tokens", request.max_sequence_tokens, f"<= {window}", fix)


def _sliding_window(config: Mapping[str, Any]) -> int | None:
    """Window in tokens when a layer uses one."""
    window = config.get("sliding_window")
    kinds = config.get("layer_types")
    used = "sliding_attention" in kinds if kinds else config.get("use_sliding_window") is not False
    return int(window) if window and used else None
