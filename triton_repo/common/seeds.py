"""Seeds of requests that an orchestrator resends in rounds.

An engine that starts its random stream anew for each call would draw the same numbers in each round, so every round gets a seed of its
own: the request's seed in the low bits, the number of tokens made so far above it. An engine whose draws depend on seed and position
alone takes the low bits only, and then a resent sequence draws exactly what an uninterrupted one draws.
"""

SEED_BITS = 40
_SEED_MASK = (1 << SEED_BITS) - 1
_ROUND_MASK = (1 << (64 - SEED_BITS)) - 1


def round_seed(seed: int, made_tokens: int) -> int:
    """The 64 bit seed of the call that begins after `made_tokens` tokens of the answer."""
    return (seed & _SEED_MASK) | (made_tokens & _ROUND_MASK) << SEED_BITS


def request_seed(seed: int) -> int:
    """The request's own seed, the same in all rounds."""
    return seed & _SEED_MASK
