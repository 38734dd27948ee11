"""An engine folder in place of a checkpoint: whether it is the engine that the pair file asks for.

Whether all its ranks are there is said by the reader of checkpoints.
"""

import re
from collections.abc import Mapping
from typing import Any

from plugins.nvidia.rules import Case, Findings, Side, finding

EXTERNAL_DRAFTS = "draft_tokens_external"
"""`speculative_decoding_mode` of a target that takes draft tokens."""


def engines(case: Case) -> list[Side]:
    """The sides whose checkpoint is an engine already."""
    return [side for side in case.sides if side.facts.stored.kind == "tensorrt_llm_engine"]


def same_release(case: Case) -> Findings:
    """R96, R97, R98: an engine loads only in the release that built it."""
    for side in engines(case):
        built = side.facts.stored.release or str(side.facts.config.get("version", ""))
        if built != case.release.name:
            message = (
                f"The {side.role}'s engine was built with TensorRT-LLM {built or 'of no named release'}, and the release is "
                f"{case.release.name}: an engine loads only in the release that built it."
            )
            fix = f'set engine.release to "{built}", or build the engine again' if built else "build the engine again"
            yield finding("RULE-ENGINE-RELEASE", "error", "engine.release", message, found=case.release.name, needed=built, fix=fix)


def same_chip(case: Case) -> Findings:
    """R99: an engine is tied to one compute capability; its own record does not say which."""
    for side in engines(case):
        built = re.sub(r"\D", "", side.facts.stored.details.get("sm", ""))
        if built and int(built) != case.sm:
            message = f"The {side.role}'s engine was built for sm_{built}, and {case.deployment.chip.name} is sm_{case.sm}."
            fix = "build it again on this chip"
            yield finding("RULE-ENGINE-CHIP", "error", "hardware.chip", message, found=f"sm_{case.sm}", needed=f"sm_{built}", fix=fix)


def takes_drafts(case: Case) -> Findings:
    """R01: what the target was built to verify; without the mode it verifies nothing."""
    asked = case.deployment.max_draft_tokens
    for side in engines(case):
        if side.role != "target" or not case.drafts:
            continue
        details = side.facts.stored.details
        external = details.get("speculative_decoding_mode") == EXTERNAL_DRAFTS
        built = _count(details.get("max_draft_tokens", "")) if external else 0
        if asked > built:
            why = "" if external else f" (it was built without {EXTERNAL_DRAFTS})"
            message = f"The plan asks for {asked} draft tokens, and the target's engine takes {built}{why}: such a request is rejected."
            lower = f"set speculation.max_draft_tokens to {built} or less, or " if built else "set draft.method: none, or "
            field = "speculation.max_draft_tokens"
            fix = f"{lower}build the target again with --speculative_decoding_mode {EXTERNAL_DRAFTS} --max_draft_len {asked}"
            yield finding("RULE-ENGINE-DRAFTS", "error", field, message, found=asked, needed=f"<= {built}", fix=fix)


def limits_fit(case: Case) -> Findings:
    """R117: the engine's numbers win over the repository's."""
    for side in engines(case):
        build, request = _build(side), side.request
        for key, field, asked in (
            ("max_batch_size", "limits.max_batch_size", request.max_batch_size),
            ("max_num_tokens", "limits.max_batched_tokens", request.max_batched_tokens),
            ("max_seq_len", "limits.max_sequence_tokens", request.max_sequence_tokens),
        ):
            built = build.get(key)
            if isinstance(built, int) and built < asked:
                message = f"The {side.role}'s engine was built with {key} {built}, and the pair file asks for {asked}."
                fix = f"set {field} to {built} or less, or build the engine again"
                yield finding("RULE-ENGINE-LIMITS", "error", field, message, found=asked, needed=f"<= {built}", fix=fix)


def prompts_fit(case: Case) -> Findings:
    """A prompt that is longer than the engine's max_input_len is rejected; each draft round sends the grown sequence as one."""
    asked = case.deployment.max_prompt_tokens
    for side in engines(case):
        built, grown = _build(side).get("max_input_len"), side.request.max_input_tokens if case.drafts else 0
        if not isinstance(built, int) or built >= max(asked, grown):
            continue
        start = f"The {side.role}'s engine was built with max_input_len {built}"
        if built < asked:
            field, found, most = "limits.max_input_tokens", asked, built
            message = f"{start}, and prompts have up to {asked} tokens: longer ones are rejected."
        else:
            field, found, most = "limits.max_sequence_tokens", grown + 1, built + 1
            message = f"{start}, and each draft round sends the grown sequence as a prompt, up to {grown} tokens: longer ones are rejected."
        fix = f"set {field} to {most} or less, or build the engine again with --max_input_len {max(asked, grown)}"
        yield finding("RULE-ENGINE-LIMITS", "error", field, message, found=found, needed=f"<= {most}", fix=fix)


def features_fit(case: Case) -> Findings:
    """R04, R02: features that the builder switched off, or that were never asked for, show in the engine's record."""
    for side in engines(case):
        build = _build(side)
        plugins = _object(build.get("plugin_config"))
        field = side.field("checkpoint")
        if (case.drafts or case.deployment.reuse) and plugins.get("use_paged_context_fmha") is False:
            wish = "draft tokens" if case.drafts else "block reuse"
            message = f"The {side.role}'s engine has no paged context FMHA, and {wish} cannot be without it."
            fix = "build it again with use_paged_context_fmha enable"
            yield finding("RULE-ENGINE-FMHA", "error", field, message, found="false", needed="true", fix=fix)
        if case.deployment.acceptance == "logits" and build.get("gather_generation_logits") is False:
            message = f"Acceptance by logits needs generation logits, and the {side.role}'s engine was built without them."
            fix = "build it again with gather_generation_logits, or set speculation.acceptance: tokens"
            yield finding("RULE-ENGINE-LOGITS", "error", field, message, found="false", needed="true", fix=fix)


def _build(side: Side) -> Mapping[str, Any]:
    """`build_config` of the engine's record: the values after the builder's corrections."""
    return _object(side.facts.config.get("build_config"))


def _object(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else that a record may hold."""
    return value if isinstance(value, Mapping) else {}


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


BUILT_RULES = (same_release, same_chip, takes_drafts, limits_fit, prompts_fit, features_fit)
