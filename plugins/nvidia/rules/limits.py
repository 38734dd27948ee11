"""Batch, token and length limits against each other, as the builder and the runtime treat them."""

from plugins.nvidia.rules.case import Case, Findings, finding

MOST_USEFUL_BATCHED_TOKENS = 16384
"""Above it the builder warns: more may exceed a tensor's volume and is not faster."""
LARGEST_USUAL_BLOCK = 128
LARGEST_DRAFTING_BATCH = 64
HEAD_SIZE_MULTIPLE = 8


def block_size(case: Case) -> Findings:
    """R18: only whole blocks are shared; the kernels take powers of two."""
    tokens, field = case.deployment.target.tokens_per_block, "kv_cache.tokens_per_block"
    if tokens & (tokens - 1):
        lower = 1 << (tokens.bit_length() - 1)
        message = f"The paged cache has blocks of a power of two, and {tokens} is none."
        fix = f"set {field} to {lower} or {2 * lower}"
        yield finding("RULE-BLOCK-SIZE", "error", field, message, found=tokens, needed="a power of two", fix=fix)
    elif tokens > LARGEST_USUAL_BLOCK:
        message = f"Only whole blocks are shared, so prompts with less than {tokens} tokens in common share nothing."
        fix = f"set {field} to 32 or 64"
        yield finding("RULE-BLOCK-LARGE", "warning", field, message, found=tokens, needed=f"<= {LARGEST_USUAL_BLOCK}", fix=fix)


def batch_with_drafts(case: Case) -> Findings:
    """R58: drafts pay while the GPU waits for memory, that is at small batches."""
    batch, field = case.deployment.target.max_batch_size, "limits.max_batch_size"
    if case.drafts and batch > LARGEST_DRAFTING_BATCH:
        message = f"A batch of {batch} keeps the GPU busy by itself; above {LARGEST_DRAFTING_BATCH}, draft tokens seldom pay."
        fix = f"set {field} to {LARGEST_DRAFTING_BATCH} or less, or draft.method: none"
        yield finding("RULE-BATCH-DRAFTS", "warning", field, message, found=batch, needed=f"<= {LARGEST_DRAFTING_BATCH}", fix=fix)


def batched_tokens(case: Case) -> Findings:
    """Most tokens of a pass: enough for a verification of the whole batch, and not more than is useful."""
    target, field = case.deployment.target, "limits.max_batched_tokens"
    tokens, k = target.max_batched_tokens, case.deployment.max_draft_tokens
    needed = target.max_batch_size * (k + 1)
    most = target.max_batch_size * target.max_sequence_tokens
    if tokens < needed:
        message = (
            f"Verifying {k} draft tokens and one more for {target.max_batch_size} sequences is a pass of {needed} tokens, and the limit is "
            f"{tokens}; the builder would raise it without asking."
        )
        fix = f"set {field} to {needed} or more, or a lower limits.max_batch_size"
        yield finding("RULE-BATCHED-TOKENS", "error", field, message, found=tokens, needed=f">= {needed}", fix=fix)
    elif tokens > most:
        sequences = f"limits.max_batch_size {target.max_batch_size} x limits.max_sequence_tokens {target.max_sequence_tokens}"
        message = f"{sequences} is {most} tokens, and a pass cannot have more; the builder lowers the limit of {tokens} to that."
        yield finding("RULE-BATCHED-CLIPPED", "warning", field, message, found=tokens, needed=f"<= {most}", fix=f"set {field} to {most}")
    elif tokens > MOST_USEFUL_BATCHED_TOKENS:
        message = f"A pass of {tokens} tokens is not faster than one of {MOST_USEFUL_BATCHED_TOKENS} and takes memory from the cache."
        fix = f"set {field} to {MOST_USEFUL_BATCHED_TOKENS} or less"
        yield finding("RULE-BATCHED-LARGE", "warning", field, message, found=tokens, needed=f"<= {MOST_USEFUL_BATCHED_TOKENS}", fix=fix)


def block_in_pass(case: Case) -> Findings:
    """The unit of chunked context is a block."""
    target, field = case.deployment.target, "limits.max_batched_tokens"
    if target.max_batched_tokens < target.tokens_per_block:
        message = (
            f"A prompt is read in chunks of whole blocks, and a block of {target.tokens_per_block} tokens is more than a pass of "
            f"{target.max_batched_tokens}."
        )
        needed, fix = f">= {target.tokens_per_block}", f"set {field} to {target.tokens_per_block} or more"
        yield finding("RULE-BATCHED-BLOCK", "error", field, message, found=target.max_batched_tokens, needed=needed, fix=fix)


def head_size(case: Case) -> Findings:
    """R78: head size 100 with an INT8 cache failed at run time."""
    for side in case.sides:
        size = side.shape.head_dim
        if size % HEAD_SIZE_MULTIPLE and not side.shape.kv_lora_rank:
            message = f"Heads of {size} numbers: the attention kernels take multiples of {HEAD_SIZE_MULTIPLE}."
            fix = "choose another checkpoint, or engine.kind: openvino"
            needed = f"a multiple of {HEAD_SIZE_MULTIPLE}"
            yield finding("RULE-HEAD-SIZE", "error", side.field("checkpoint"), message, found=size, needed=needed, fix=fix)


LIMIT_RULES = (block_size, batch_with_drafts, batched_tokens, block_in_pass, head_size)
