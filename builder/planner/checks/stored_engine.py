"""A target that is already a built TensorRT-LLM engine: what it was built for decides what it can verify."""

from collections.abc import Iterator, Mapping
from typing import Any

from builder.errors import Finding
from builder.planner.checks.models import Model
from builder.spec import PairSpec

EXTERNAL_DRAFTS = (2, "draft_tokens_external", "DRAFT_TOKENS_EXTERNAL")
"""`build_config.speculative_decoding_mode`: a bit flag in the engine's record, a word on the command line of trtllm-build."""

LIMITS = {"max_batch_size": "max_batch_size", "max_input_len": "max_input_tokens", "max_seq_len": "max_sequence_tokens"}
"""Name in the engine's record to name under limits."""


def check_stored_engine(spec: PairSpec, model: Model) -> Iterator[Finding]:
    """Draft length and limits asked for against those that the engine was built with."""
    if model.checkpoint.stored.kind != "tensorrt_llm_engine":
        return
    build = model.checkpoint.config.get("build_config")
    build = build if isinstance(build, Mapping) else {}
    if model.role == "target" and spec.draft.method != "none":
        yield from _draft_length(spec.speculation.max_draft_tokens, model, build)
    for name, limit in LIMITS.items():
        yield from _limit(model, name, build.get(name), limit, getattr(spec.limits, limit))


def _draft_length(wanted: int, target: Model, build: Mapping[str, Any]) -> Iterator[Finding]:
    mode = build.get("speculative_decoding_mode")
    most = int(build.get("max_draft_len") or 0) if mode in EXTERNAL_DRAFTS else 0
    if wanted <= most:
        return
    asked = f"speculation.max_draft_tokens is {wanted}, but the engine of {target}"
    rebuild = f"build the engine again with --speculative_decoding_mode draft_tokens_external --max_draft_len {wanted}"
    if most:
        message = f"{asked} was built to verify at most {most} (max_draft_len {most})."
        fix = f"set speculation.max_draft_tokens to {most} or less, or {rebuild}"
    else:
        message = f"{asked} was built without speculative_decoding_mode draft_tokens_external, so it verifies 0."
        fix = f"set draft.method: none, or {rebuild}"
    yield Finding("PAIR-DRAFT-LENGTH", "error", message, "speculation.max_draft_tokens", str(wanted), f"<= {most}", fix)


def _limit(model: Model, name: str, built: object, limit: str, wanted: int) -> Iterator[Finding]:
    if isinstance(built, int) and built < wanted:
        message = f"limits.{limit} is {wanted}, but the engine of {model} was built with {name} {built}."
        fix = f"set limits.{limit} to {built} or less, or build the engine again with --{name} {wanted}"
        yield Finding("PAIR-ENGINE-LIMIT", "error", message, f"limits.{limit}", str(wanted), f"<= {built}", fix)
