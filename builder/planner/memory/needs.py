"""Tokens that sequences take in a paged pool: whole blocks, with room for a draft that may be rejected."""

from builder.spec import PairSpec

FIRST_CONTEXT_TOKENS = 1024


def whole_blocks(tokens: int, tokens_per_block: int) -> int:
    """`tokens` rounded up to whole blocks."""
    return -(-tokens // tokens_per_block) * tokens_per_block


def head_room_tokens(spec: PairSpec) -> int:
    """Slots of one sequence beyond its length: a whole draft and the target's own token."""
    return spec.speculation.max_draft_tokens + 1 if spec.draft.method != "none" else 1


def sequence_tokens(spec: PairSpec, context_tokens: int) -> int:
    """What one sequence of `context_tokens` takes of a pool, in tokens."""
    return whole_blocks(context_tokens + head_room_tokens(spec), spec.kv_cache.tokens_per_block)


def needed_tokens(spec: PairSpec) -> int:
    """Tokens that each pool needs so that every sequence of the batch can be as long as the limit allows."""
    return spec.limits.max_batch_size * sequence_tokens(spec, spec.limits.max_sequence_tokens)


def context_lengths(spec: PairSpec) -> tuple[int, ...]:
    """1k, 2k, 4k, ... below the limit, and the limit."""
    limit, lengths, length = spec.limits.max_sequence_tokens, [], FIRST_CONTEXT_TOKENS
    while length < limit:
        lengths.append(length)
        length *= 2
    return (*lengths, limit)


def longest_context_tokens(spec: PairSpec, pool_tokens: int, sequences: int) -> int:
    """Longest context of which `sequences` fit into a pool; 0 when not one token does."""
    block = spec.kv_cache.tokens_per_block
    return max(0, pool_tokens // block // sequences * block - head_room_tokens(spec))
