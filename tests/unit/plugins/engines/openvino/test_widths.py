"""Fixed widths: what a draft of each length needs, none for large models, and their memory in the plan."""

import pytest

from plugins.engines.openvino.widths import PINNED_LIMIT_BYTES, pinned_widths


@pytest.mark.parametrize(
    ("role", "max_draft_tokens", "widths"),
    [
        ("target", 0, (2,)),
        ("target", 1, (2,)),
        ("target", 2, (2, 3)),
        ("target", 5, (2, 4, 6)),
        ("target", 8, (2, 4, 6, 9)),
        ("draft", 0, (2, 4, 6, 10)),
    ],
)
def test_longest_verification_has_a_width(role: str, max_draft_tokens: int, widths: tuple[int, ...]) -> None:
    assert pinned_widths(role, max_draft_tokens, 1000) == widths
    assert max_draft_tokens + 1 <= max(widths)


def test_larger_models_have_fewer_widths_the_decode_step_last() -> None:
    assert pinned_widths("target", 8, PINNED_LIMIT_BYTES // 3) == (2, 4, 9)
    assert pinned_widths("target", 8, PINNED_LIMIT_BYTES // 2) == (2, 9)
    assert pinned_widths("target", 8, PINNED_LIMIT_BYTES) == (2,)
    assert pinned_widths("target", 8, PINNED_LIMIT_BYTES + 1) == ()
