"""Prompt lookup: propose the tokens that followed the latest earlier occurrence of the sequence's last few tokens."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MAX_MATCH_TOKENS = 3
_BITS_PER_TOKEN = 21  # three tokens of a vocabulary up to two million fit a 63 bit key
_MASKS = tuple((1 << (_BITS_PER_TOKEN * n)) - 1 for n in range(MAX_MATCH_TOKENS + 1))


@dataclass(frozen=True)
class Proposal:
    """Tokens proposed, and how many tokens of the sequence's end were found again (0: nothing found)."""

    tokens: tuple[int, ...] = ()
    match_tokens: int = 0


NOTHING = Proposal()


class PromptLookup:
    """An index of the n-grams (1 to 3 tokens) of one growing sequence; a call costs microseconds.

    Each n-gram maps to the position after its latest occurrence that already has a following token, so that the end of the
    sequence never finds itself.
    """

    def __init__(self, tokens: Iterable[int] | npt.NDArray[np.int32] = ()) -> None:
        self._tokens: list[int] = []
        self._after: tuple[dict[int, int], ...] = ({}, {}, {})
        self._tail = 0
        self._build(np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens), dtype=np.int64))

    def __len__(self) -> int:
        return len(self._tokens)

    def _build(self, tokens: npt.NDArray[np.int64]) -> None:
        """Index a whole prompt at once (about 0.2 us a token)."""
        self._tokens = tokens.tolist()
        keys = np.zeros(len(tokens), dtype=np.int64)
        for n in range(1, min(MAX_MATCH_TOKENS, len(tokens)) + 1):
            keys = (keys[:-1] if n > 1 else keys) << _BITS_PER_TOKEN | tokens[n - 1 :]
            self._after[n - 1].update(zip(keys[:-1].tolist(), range(n, len(tokens)), strict=True))
        for token in self._tokens[-MAX_MATCH_TOKENS:]:
            self._tail = (self._tail << _BITS_PER_TOKEN | token) & _MASKS[MAX_MATCH_TOKENS]

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens to the sequence."""
        known, tail = self._tokens, self._tail
        for token in tokens:
            position = len(known)
            for n in range(1, min(MAX_MATCH_TOKENS, position) + 1):
                self._after[n - 1][tail & _MASKS[n]] = position
            known.append(token)
            tail = (tail << _BITS_PER_TOKEN | token) & _MASKS[MAX_MATCH_TOKENS]
        self._tail = tail

    def propose(self, limit_tokens: int) -> Proposal:
        """Up to `limit_tokens` tokens that followed the longest end of the sequence that occurred before.

        A continuation that reaches the end of the sequence repeats itself: the text is periodic there.
        """
        known = self._tokens
        if limit_tokens <= 0:
            return NOTHING
        for n in range(min(MAX_MATCH_TOKENS, len(known)), 0, -1):
            start = self._after[n - 1].get(self._tail & _MASKS[n])
            if start is not None:
                period = len(known) - start
                return Proposal(tuple(known[start + i % period] for i in range(limit_tokens)), n)
        return NOTHING
