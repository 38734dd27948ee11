"""Drafts on both lanes: what they need, and what is known to spoil them."""

from plugins.nvidia.rules.case import Case, Findings, finding

METHODS = ("draft_target", "ngram", "none")


def method_known(case: Case) -> Findings:
    """Ways to draft that other lanes or plug-ins have."""
    method = case.deployment.method
    if method not in METHODS:
        message = f"engine.kind {case.lane.kind} has no way to draft that is called {method}."
        fix = "set draft.method to draft_target, ngram or none"
        yield finding("RULE-METHOD", "error", "draft.method", message, found=method, needed=" | ".join(METHODS), fix=fix)


def drafts_need_reuse(case: Case) -> Findings:
    """R03, H3: every round is a new request with the whole prefix."""
    if case.drafts and not case.deployment.reuse:
        message = "Draft tokens need block reuse: every round is a new request with the whole sequence, which would be computed again."
        fix = "set kv_cache.reuse: true, or draft.method: none"
        yield finding("RULE-DRAFTS-REUSE", "error", "kv_cache.reuse", message, found="false", needed="true", fix=fix)


def draft_kv_cache(case: Case) -> Findings:
    """R75, R76: a quantized cache of the draft costs acceptance."""
    draft = case.draft
    if draft and draft.kv_cache in ("fp8", "int8", "nvfp4"):
        message = (
            f"A draft with an {draft.kv_cache.upper()} cache proposes worse: 2.7 accepted tokens became 1.8 in one report. Its cache is "
            "the small part of the memory."
        )
        fix = f"{draft.other_cache('bf16')}, or compare both in the gates"
        yield finding("RULE-DRAFT-KV", "warning", "draft.kv_cache", message, found=draft.kv_cache, needed="bf16", fix=fix)


def offload_without_reuse(case: Case) -> Findings:
    """Blocks go to host memory only to be found again."""
    size = case.deployment.host_offload_bytes
    if size and not case.deployment.reuse:
        message = "Blocks are kept in host memory to be reused, and kv_cache.reuse is false: they would never be read."
        fix = "set kv_cache.reuse: true, or kv_cache.host_offload_bytes: 0"
        yield finding("RULE-OFFLOAD-REUSE", "error", "kv_cache.host_offload_bytes", message, found=size, needed=0, fix=fix)


DRAFT_RULES = (method_known, drafts_need_reuse, draft_kv_cache, offload_without_reuse)
