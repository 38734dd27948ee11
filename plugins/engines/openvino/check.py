"""What this lane refuses, decided from `config.json` and the request alone."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from builder.api import Deployment, EngineRequest, Finding
from plugins.engines.openvino.families import families, refusal
from plugins.engines.openvino.kv_cache import WORDS as KV_WORDS
from plugins.engines.openvino.record import TOKENS_PER_BLOCK, TUNED_FOR

WEIGHTS = ("none", "int8", "int4")
OPTIONS = ("exact_draft", "group_size", "ratio", "tuned_for")
"""`exact_draft` bool (true): whether the draft, too, answers the same however tokens are grouped; targets always do. `group_size` int (64)
and `ratio` 0..1 (0.8) for int4 weights. `tuned_for`: which of its kernels computes attention, see `TUNED_FOR`."""

_GROWING_ROPE = ("dynamic", "longrope", "su", "yarn_dynamic")
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
    return [*findings, *_check_architecture(config), *_check_attention(config), *_check_positions(config, request)]


def check_deployment(deployment: Deployment) -> list[Finding]:
    """Settings of other lanes, which this one would silently ignore, and its own rules of topology and acceptance."""
    findings = [*_without_effect(deployment)]
    if deployment.topology == "single":
        message = "The CPU lane serves target and draft as two Triton models that tensorrt_llm_bls asks in turn."
        fix = "set serve.topology: orchestrated"
        findings.append(_refusal("PAIR-TOPOLOGY", message, "serve.topology", "single", "orchestrated", fix))
    if deployment.acceptance == "logits":
        message = "The CPU engine accepts draft tokens by token id; under sampling that keeps the target's distribution too."
        fix = "set speculation.acceptance: tokens"
        findings.append(_refusal("PAIR-ACCEPTANCE", message, "speculation.acceptance", "logits", "tokens", fix))
    return findings


def _without_effect(deployment: Deployment) -> _Findings:
    target, draft = deployment.target, deployment.draft
    values = (
        ("hardware.chip", deployment.chip.name, "cpu"),
        ("hardware.count", deployment.chip_count, 1),
        ("target.tensor_parallel", target.tensor_parallel, 1),
        ("target.pipeline_parallel", target.pipeline_parallel, 1),
        ("draft.tensor_parallel", draft.tensor_parallel if draft else 1, 1),
        ("kv_cache.host_offload_bytes", deployment.host_offload_bytes, 0),
        ("engine.release", target.release, None),
    )
    for field, found, needed in values:
        if found != needed:
            fix = f"set it to {needed} or leave it out" if needed is not None else "leave it out"
            yield _refusal("PAIR-NO-EFFECT", "This setting has no meaning on the openvino lane.", field, found, str(needed), fix)


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
    "tuned_for": (" | ".join(TUNED_FOR), lambda value: value in TUNED_FOR),
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
    reason = refusal(config)
    if reason:
        message = f"The CPU engine cannot run {kind or 'this model'}: {reason}."
        fix = "use a decoder-only text model with standard attention, or another engine.kind"
        yield _refusal("ENGINE-ARCHITECTURE", message, "model_type", kind, "a decoder-only text model", fix)
    elif kind not in families().tried:
        message = (
            f"No {kind} model was tried on the CPU engine. The build compares the engine with transformers and fails where they differ."
        )
        fix = "build it to find out, or choose a family that was tried"
        yield Finding("ENGINE-UNTRIED", "warning", message, "model_type", str(kind), ", ".join(sorted(families().tried)), fix)


def _check_attention(config: Mapping[str, Any]) -> _Findings:
    if config.get("attn_logit_softcapping"):
        message = f"{config.get('model_type', '')} soft-caps its attention scores, which OpenVINO's paged attention does not do."
        found = config["attn_logit_softcapping"]
        yield _refusal("ENGINE-SOFTCAP", message, "attn_logit_softcapping", found, "null", "choose another model or engine.kind")


def _check_positions(config: Mapping[str, Any], request: EngineRequest) -> _Findings:
    """Rotary embeddings that change with the length of the sequence: a traced model keeps those of a short one."""
    for rope in _ropes(config):
        kind = rope.get("rope_type", rope.get("type", "default"))
        limit = _unchanged_up_to(config, rope)
        if kind in _GROWING_ROPE and request.max_sequence_tokens > limit:
            message = f"Rotary embedding of type {kind} changes beyond {limit} tokens; a traced model cannot."
            found, fix = request.max_sequence_tokens, f"set limits.max_sequence_tokens to {limit} or less"
            yield _refusal("ENGINE-ROPE", message, "limits.max_sequence_tokens", found, f"<= {limit}", fix)


def _ropes(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Parameters of the rotary embeddings; some families have one for each kind of layer."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    nested = [value for value in rope.values() if isinstance(value, Mapping)]
    return nested or [rope]


def _unchanged_up_to(config: Mapping[str, Any], rope: Mapping[str, Any]) -> int:
    key = "original_max_position_embeddings"
    return int(rope.get(key) or config.get(key) or config.get("max_position_embeddings") or 0)
