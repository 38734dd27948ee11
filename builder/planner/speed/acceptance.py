"""How many tokens a cycle yields: each draft token is accepted with chance a, and the first that is not ends the cycle."""

STEPS = 60


def expected_length(acceptance: float, draft_tokens: int) -> float:
    """Tokens of one cycle, the target's own included: (1 - a^(k+1)) / (1 - a) (Leviathan et al. 2023, equation 1)."""
    if acceptance >= 1:
        return draft_tokens + 1.0
    return (1 - acceptance ** (draft_tokens + 1)) / (1 - acceptance)


def acceptance_of(length: float, draft_tokens: int) -> float | None:
    """The acceptance at which cycles of `draft_tokens` yield `length` tokens; None where none does (length above k + 1)."""
    if length > draft_tokens + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if expected_length(middle, draft_tokens) < length:
            low = middle
        else:
            high = middle
    return (low + high) / 2
