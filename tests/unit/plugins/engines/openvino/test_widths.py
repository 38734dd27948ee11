"""Fixed widths: what a draft of each length needs, none for large models, and their memory in the plan."""

import pytest

from plugins.engines.openvino.widths import PINNED_LIMIT_BYTES, pinned_widths


@pytest.mark.parametrize(
    ("role", "max_draft_tokens", "widths"),
    [("target", 0, (2,)), ("target", 1, (2, 4)), ("target", 3, (2, 4)), ("target", 5, (2, 4, 6)), ("draft", 0, (2, 4, 8))],
)
def test_longest_verification_has_a_width(role: str, max_draft_tokens: int, widths: tuple[int, ...]) -> None:
    assert pinned_widths(role, max_draft_tokens, 1000) == widths
    assert max_draft_tokens + 1 <= max(widths)


def test_large_models_are_compiled_once() -> None:
    assert pinned_widths("target", 5, PINNED_LIMIT_BYTES + 1) == ()
