"""Acceptance is counted by comparing."""

import numpy as np
import pytest

from triton_repo.common.acceptance import count_accepted


@pytest.mark.parametrize(
    ("draft", "output", "accepted"),
    [
        ([1, 2, 3], [1, 2, 3, 4], 3),
        ([1, 2, 3], [1, 9], 1),
        ([1, 2, 3], [9], 0),
        ([], [5], 0),
        ([1, 2, 3], [1, 2], 2),
        ([1, 2], [8, 2, 3, 4, 5], 0),
    ],
)
def test_counts_the_common_beginning(draft: list[int], output: list[int], accepted: int):
    assert count_accepted(draft, output) == accepted
    assert count_accepted(np.array(draft, dtype=np.int32), np.array(output, dtype=np.int32)) == accepted
