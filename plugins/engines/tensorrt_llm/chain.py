"""The chain of the engine builder: drafts need block reuse, reuse needs paged context FMHA, and several settings switch that off.

Later releases only warn and build without the feature; the pair then fails when it is loaded. Source: TensorRT-LLM 1.3.0rc3 builder.
"""

from dataclasses import dataclass

from builder.api import Finding
from plugins.nvidia.rules import Case, Findings, Side, any_of, finding

NO_REUSE = "without it there is no block reuse"
NO_DRAFTS = "without reuse no draft tokens"


@dataclass(frozen=True)
class Break:
    """Why an engine has no paged context FMHA: the start of the chain, and what to change."""

    code: str
    field: str
    reason: str
    found: str
    needed: str
    fix: str


def paged_context_breaks(side: Side, sm: int) -> list[Break]:
    """Everything that switches paged context FMHA off for one engine; empty when it is on."""
    return [*_options_off(side), *_int8_cache(side), *_fp8_cache(side, sm)]


def reuse_chain(case: Case) -> Findings:
    """R04, R07, R08: the feature goes silently, and what stands on it with it."""
    if not (case.drafts or case.deployment.reuse):
        return
    for side in case.sides:
        for broken in paged_context_breaks(side, case.sm):
            yield _broken(case, broken)


def _broken(case: Case, broken: Break) -> Finding:
    chain = f"{NO_REUSE}, {NO_DRAFTS}" if case.drafts else f"{NO_REUSE}, and kv_cache.reuse: true would be dropped with a warning"
    message = f"{broken.reason}, {chain}."
    return finding(
        broken.code,
        "error",
        broken.field,
        message,
        found=broken.found,
        needed=broken.needed,
        fix=broken.fix if case.drafts else f"{broken.fix}, or kv_cache.reuse: false",
    )


def _options_off(side: Side) -> list[Break]:
    breaks = []
    for name, title in (
        ("context_fmha", "With context_fmha off there is no paged context FMHA"),
        ("use_paged_context_fmha", "use_paged_context_fmha is off"),
    ):
        if side.option(name) is False:
            breaks.append(Break("RULE-FMHA-OFF", f"engine.options.{name}", title, "false", "true", f"remove engine.options.{name}"))
    return breaks


def _int8_cache(side: Side) -> list[Break]:
    if side.kv_cache != "int8":
        return []
    field = side.field("kv_cache")
    reason = f"INT8 KV of the {side.role} switches paged context FMHA off"
    fix = side.other_cache(f"bf16, or to fp8 with {any_of(side.lane.fp8_class)} weights on sm_89 or newer")
    return [Break("RULE-KV-INT8-REUSE", field, reason, "int8", "bf16 | fp8", fix)]


def _fp8_cache(side: Side, sm: int) -> list[Break]:
    if side.kv_cache != "fp8" or side.algorithm in side.lane.fp8_class:
        return []
    field, weights = side.field("kv_cache"), side.algorithm or "unquantized"
    needed = any_of(side.lane.fp8_class)
    reason = f"FP8 KV keeps paged context FMHA only with {needed} weights, and the {side.role}'s are {weights}: the builder switches it off"
    words = [w for w, row in side.lane.weights.items() if row.algorithms[0] in side.lane.fp8_class and row.runs_on(sm)]
    if side.facts.stored.weights:  # what is stored is not quantized again
        other = "" if side.cache_is_fixed else f", or {side.other_cache('bf16')}"
        fix = f"point {side.field('checkpoint')} at a checkpoint with {needed} weights{other}"
    else:
        other = side.other_cache("bf16")
        fix = f"set {side.field('weights')} to {any_of(words)}, or {other.removeprefix('set ')}" if words else other
    return [Break("RULE-KV-FP8-WEIGHTS", field, reason, weights, needed, fix)]


def chunked_context(case: Case) -> Findings:
    """R120: a prompt that is longer than a pass must be read in chunks, and chunks need paged context FMHA too."""
    target = case.target
    longest, tokens = target.request.max_input_tokens, target.request.max_batched_tokens
    if longest <= tokens:
        return
    subject = _long_prompts(case.deployment.max_prompt_tokens or longest, longest)
    broken = paged_context_breaks(target, case.sm)
    if broken and (case.drafts or case.deployment.reuse):
        return  # the chain says it already
    field = "limits.max_batched_tokens"
    if target.option("chunked_context") is False or broken:
        reason = f"{broken[0].reason}, and chunks need it" if broken else "chunked_context is off"
        message = f"{subject}, more than a pass of {tokens} takes, so they must be read in chunks; but {_lower(reason)}."
        fix = f"set {field} to {longest} or more, or remove what switches chunked context off"
        yield finding("RULE-CHUNKED", "error", field, message, found=tokens, needed=f">= {longest}", fix=fix)
    else:
        message = f"{subject}; what is longer than a pass of {tokens} is read in chunks: chunked context is on at run time."
        yield finding("RULE-CHUNKED-ON", "info", field, message, found=tokens, fix=f"{longest} or more reads them in one pass")


def _long_prompts(asked: int, built: int) -> str:
    """The user's longest prompt, and why the engine is built for longer ones."""
    if built <= asked:
        return f"Prompts have up to {asked} tokens"
    return (
        f"Prompts have up to {asked} tokens (limits.max_input_tokens), and the sequences that the orchestrator sends as a prompt in each "
        f"round grow to {built}"
    )


def _lower(reason: str) -> str:
    """As the middle of a sentence; names and acronyms stay."""
    return reason[0].lower() + reason[1:] if reason.startswith("With ") else reason


def context_logits(case: Case) -> Findings:
    """The builder stops on context logits with drafts; at run time they turn reuse off."""
    if not case.target.option("gather_context_logits"):
        return
    field = "engine.options.gather_context_logits"
    if case.drafts:
        message = "Context logits and draft tokens exclude each other: the builder stops on both together."
        fix = "remove gather_context_logits, or set draft.method: none"
        yield finding("RULE-CONTEXT-LOGITS", "error", field, message, found="true", needed="false", fix=fix)
    elif case.deployment.reuse:
        message = "An engine that returns context logits reuses no blocks: the runtime drops kv_cache.reuse with a warning."
        fix = "remove gather_context_logits, or set kv_cache.reuse: false"
        yield finding("RULE-CONTEXT-LOGITS", "error", field, message, found="true", needed="false", fix=fix)


CHAIN_RULES = (reuse_chain, chunked_context, context_logits)
