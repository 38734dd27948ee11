"""Row counts of a pass that get a compiled model of their own."""

PINNED_LIMIT_BYTES = 1 << 30
"""Above this size of the weights a model is compiled once: each copy holds its own weights in the kernels' layout."""


def pinned_widths(role: str, max_draft_tokens: int, weights_bytes: int) -> tuple[int, ...]:
    """Row counts, ascending; empty for a model that is too large to be compiled several times.

    When the number of rows changes from one pass to the next OpenVINO (2026.4, CPU) prepares every operation again, which costs about half
    a decode step of a small model. A pass over one sequence is padded to the next of these widths and never pays it.
    """
    if weights_bytes > PINNED_LIMIT_BYTES:
        return ()
    if role == "draft":
        return (2, 4, 8)
    return tuple(sorted({2} | ({4, max_draft_tokens + 1} if max_draft_tokens else set())))
