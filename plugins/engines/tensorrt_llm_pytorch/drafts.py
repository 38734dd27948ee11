"""Drafts inside the LLM API: one length for all requests, compared by token id."""

from plugins.nvidia.rules import Case, Findings, finding
from plugins.nvidia.rules.drafts import draft_kv_cache, drafts_need_reuse

REPLACED_DRAFT_RULES = (drafts_need_reuse, draft_kv_cache)
"""One process keeps both caches from round to round, and the draft's cache has the target's format."""


def acceptance_by_tokens(case: Case) -> Findings:
    """Rejection sampling came to the LLM API after 1.2."""
    if case.drafts and case.deployment.acceptance == "logits":
        message = "The LLM API compares draft tokens by id; speculative_config has no acceptance by logits up to release 1.2."
        fix, field = "set speculation.acceptance: tokens", "speculation.acceptance"
        yield finding("RULE-ACCEPTANCE-TOKENS", "error", field, message, found="logits", needed="tokens", fix=fix)


def fixed_drafts(case: Case) -> Findings:
    """speculative_config belongs to the server, not to a request."""
    k = case.deployment.max_draft_tokens
    if case.deployment.method == "draft_target":
        message = (
            f"max_draft_len is fixed when the server starts: every request gets {k} draft tokens a round, also where they do not pay. "
            "draft.lookup beside a draft model, speculation.adaptive and a request's num_draft_tokens have no effect on this lane."
        )
        fix = "take the length that the speed plan names, or engine.kind: tensorrt_llm for lengths that adapt"
        yield finding("RULE-FIXED-DRAFTS", "info", "speculation.max_draft_tokens", message, found=k, fix=fix)


def greedy_comparison(case: Case) -> Findings:
    """R32 to R34: other widths of the verify pass round differently."""
    if case.drafts:
        message = (
            "Greedy answers with and without drafts agree up to ties in the last bits, because verification runs other kernels; sampled "
            "answers cannot be compared token by token."
        )
        fix = "compare greedy answers, and set gates.lossless.near_tie_logits for ties"
        yield finding("RULE-GREEDY", "info", "gates.lossless", message, fix=fix)


def reuse_beside_a_draft(case: Case) -> Findings:
    """R20: two cache managers shared state that changed."""
    if case.draft and case.deployment.reuse:
        message = (
            "Upstream switched block reuse off beside a draft model (pull request 5448), and since when it is back is not known: prompts "
            "with a common prefix may be computed again."
        )
        fix = "read the effective setting in the server's log"
        yield finding("RULE-REUSE-DRAFT", "info", "kv_cache.reuse", message, found="true", fix=fix)


def draft_shares_format(case: Case) -> Findings:
    """R75, R76: a quantized cache of the draft costs acceptance; here it cannot differ from the target's."""
    draft = case.draft
    if draft and draft.request.kv_cache in ("fp8", "nvfp4"):
        word = draft.request.kv_cache
        message = (
            f"The draft's cache is {word.upper()} like the target's, because one setting covers both; a draft with a quantized cache "
            "proposes worse: 2.7 accepted tokens became 1.8 in one report."
        )
        fix = "set target.kv_cache and draft.kv_cache to bf16 where memory allows, or compare both in the gates"
        yield finding("RULE-DRAFT-KV", "warning", "draft.kv_cache", message, found=word, needed="bf16", fix=fix)


DRAFT_RULES = (acceptance_by_tokens, fixed_drafts, greedy_comparison, reuse_beside_a_draft, draft_shares_format)
