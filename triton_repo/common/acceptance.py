"""How many drafted tokens the target took."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Tokens = Sequence[int] | npt.NDArray[np.int32]


def count_accepted(draft: Tokens, output: Tokens) -> int:
    """Length of the common beginning of the draft and the target's new tokens.

    Counted by comparing, never from the length of the output: an engine that went on after its one verifying pass would look
    as if it had accepted everything.
    """
    n = min(len(draft), len(output))
    for i in range(n):
        if draft[i] != output[i]:
            return i
    return n
