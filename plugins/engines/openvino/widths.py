"""Row counts of a pass that get a compiled model of their own."""

PINNED_LIMIT_BYTES = 1 << 30
"""What the weights of these models may take together: each holds its own in the kernels' layout."""

_LONGEST_OF_A_DRAFT = 10


def pinned_widths(role: str, max_draft_tokens: int, weights_bytes: int) -> tuple[int, ...]:
    """Row counts, ascending, as many as fit; empty for a model that is too large to be compiled several times.

    When the number of rows changes from one pass to the next OpenVINO (2026.4, CPU) prepares every operation again, which costs about half
    a decode step of a small model; and where it can change, every pass asks every operation for its shapes. A pass of few rows is
    padded to the next of these widths and pays neither. 2 is a decode step, the longest a full verification (of a draft: what its target
    accepted at most); the others keep shorter ones from being padded too far.
    """
    longest = max(2, max_draft_tokens + 1) if role == "target" else _LONGEST_OF_A_DRAFT
    by_use = [2, longest, *(width for width in (4, 6) if width < longest)]
    return tuple(sorted(set(by_use[: PINNED_LIMIT_BYTES // weights_bytes])))
