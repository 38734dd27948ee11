"""Both models live in one process and one `LLM` object: one served model, one configuration of the cache, one split."""

from plugins.nvidia.releases import at_least
from plugins.nvidia.rules import Case, Findings, Side, finding
from plugins.nvidia.rules.limits import batched_tokens
from plugins.nvidia.rules.parallel import draft_split, equal_logits

REPLACED_PROCESS_RULES = (draft_split, equal_logits, batched_tokens)
"""They suppose two engines with their own splits, or a builder that raises limits."""
FIRST_BLOCK_SIZE_TOKENS = 32
BLOCK_SIZE_UNSURE_BELOW = "1.2.0rc2"
ENGINE_KINDS = ("tensorrt_llm", "tensorrt_llm_engine")


def one_served_model(case: Case) -> Findings:
    """The llmapi model of Triton holds tokenizer, target and draft."""
    if case.deployment.topology == "orchestrated":
        message = (
            "engine.kind tensorrt_llm_pytorch serves target and draft in one process, as one Triton model that takes text: there is no "
            "second engine that tensorrt_llm_bls could ask."
        )
        fix = "set serve.topology: single, or engine.kind: tensorrt_llm"
        yield finding("RULE-TOPOLOGY", "error", "serve.topology", message, found="orchestrated", needed="single", fix=fix)


def one_kv_cache(case: Case) -> Findings:
    """kv_cache_config.dtype is auto, fp8 or nvfp4 for both models; auto is what each checkpoint says, or else 16 bits."""
    draft = case.draft
    if draft and _dtype(draft) != _dtype(case.target):
        target_word, draft_word = case.target.request.kv_cache, draft.request.kv_cache
        message = (
            f"One kv_cache_config covers both models of the process, and its dtype cannot be {target_word} for the target and "
            f"{draft_word} for the draft."
        )
        fix = f"set draft.kv_cache: {target_word}, or both to auto"
        yield finding("RULE-ONE-KV", "error", "draft.kv_cache", message, found=draft_word, needed=target_word, fix=fix)


def _dtype(side: Side) -> str:
    return "auto" if side.request.kv_cache in ("auto", "bf16") else side.request.kv_cache


def one_split(case: Case) -> Findings:
    """tensor_parallel_size is one argument of the LLM object."""
    draft = case.draft
    asked, split = (draft.request.tensor_parallel if draft else 0), case.target.request.tensor_parallel
    if draft and asked != split:
        message = f"One group of processes holds both models: the draft is split over {split} chips like the target, not over {asked}."
        fix = f"set draft.tensor_parallel: {split}"
        yield finding("RULE-ONE-SPLIT", "error", "draft.tensor_parallel", message, found=asked, needed=split, fix=fix)


def loads_hugging_face(case: Case) -> Findings:
    """Checkpoints and engines of the other lane are of no use here."""
    for side in case.sides:
        kind = side.facts.stored.kind
        if kind in ENGINE_KINDS:
            field = side.field("checkpoint")
            message = f"The {side.role} is a {kind} folder; the LLM API loads Hugging Face folders, quantized by ModelOpt or not."
            fix = f"point {field} at the Hugging Face folder, or set engine.kind: tensorrt_llm"
            yield finding("RULE-STORED-ENGINE", "error", field, message, found=kind, needed="huggingface | modelopt", fix=fix)


def pass_holds_verification(case: Case) -> Findings:
    """max_num_tokens bounds the verification of the whole batch."""
    target, field, k = case.deployment.target, "limits.max_batched_tokens", case.deployment.max_draft_tokens
    needed = target.max_batch_size * (k + 1)
    if case.drafts and target.max_batched_tokens < needed:
        message = (
            f"Verifying {k} draft tokens and one more for {target.max_batch_size} sequences is a pass of {needed} tokens, and the limit is "
            f"{target.max_batched_tokens}: some sequences would wait in every round."
        )
        fix = f"set {field} to {needed} or more, or a lower limits.max_batch_size"
        yield finding("RULE-BATCHED-TOKENS", "error", field, message, found=target.max_batched_tokens, needed=f">= {needed}", fix=fix)


def block_size_settable(case: Case) -> Findings:
    """Unknown keys are refused when the server starts."""
    tokens, field = case.deployment.target.tokens_per_block, "kv_cache.tokens_per_block"
    if tokens != FIRST_BLOCK_SIZE_TOKENS and not at_least(case.release, BLOCK_SIZE_UNSURE_BELOW):
        message = (
            f"kv_cache_config of TensorRT-LLM 1.0 has no tokens_per_block and blocks of {FIRST_BLOCK_SIZE_TOKENS} tokens; whether "
            f"{case.release.name} takes {tokens} is not known, and an unknown key stops the server."
        )
        fix = f"set {field}: {FIRST_BLOCK_SIZE_TOKENS}"
        yield finding("RULE-BLOCK-FIXED", "warning", field, message, found=tokens, needed=FIRST_BLOCK_SIZE_TOKENS, fix=fix)


PROCESS_RULES = (one_served_model, one_kv_cache, one_split, loads_hugging_face, pass_holds_verification, block_size_settable)
