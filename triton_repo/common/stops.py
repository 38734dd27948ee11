"""Stop words: as text with hold-back of partial matches, and as the token lists of the tensorrtllm contract."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class StopMatcher:
    """Cuts a streamed text before the first stop word, and holds back what may become one.

    The stop word whose END comes first wins (then the one that starts first), so the answer does not depend on how the text was cut
    into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def feed(self, text: str) -> str:
        """Take more text; return what is safe to show. After a stop word everything is swallowed."""
        if self.stopped:
            return ""
        if not self._stops:
            return text
        held = self._held + text
        match = self._first_match(held)
        if match is not None:
            self.stopped, self._held = True, ""
            return held[:match]
        keep = self._partial(held)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def flush(self) -> str:
        """What was held back, once no more text comes."""
        held, self._held = self._held, ""
        return held

    def _first_match(self, text: str) -> int | None:
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        return min(found)[1] if found else None

    def _partial(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop word."""
        longest = max(len(stop) for stop in self._stops) - 1
        for n in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-n:]) for stop in self._stops):
                return n
        return 0


def decode_word_lists(array: npt.NDArray[np.int32]) -> tuple[tuple[int, ...], ...]:
    """Words of a [2, n] (or [1, 2, n]) array: row 0 the token ids of all words, row 1 the end offset of each, padded with -1.

    Raises ValueError when the shape or an offset is impossible.
    """
    rows = array.reshape(array.shape[-2:]) if array.ndim >= 2 and array.size == array.shape[-2] * array.shape[-1] else array
    if rows.ndim != 2 or rows.shape[0] != 2:
        raise ValueError(f"word list has shape {list(array.shape)}, needs [2, n]")
    words, start = [], 0
    for end in rows[1].tolist():
        if end < 0:
            break
        if end < start or end > rows.shape[1]:
            raise ValueError(f"word list offset {end} is outside [{start}, {rows.shape[1]}]")
        if end > start:
            words.append(tuple(rows[0, start:end].tolist()))
        start = end
    return tuple(words)


def encode_word_lists(words: Sequence[Sequence[int]]) -> npt.NDArray[np.int32]:
    """The inverse of `decode_word_lists`: [2, n], n at least 1."""
    ids = [token for word in words for token in word]
    ends = np.cumsum([len(word) for word in words if len(word)]).tolist()
    array = np.full((2, max(len(ids), 1)), -1, dtype=np.int32)
    array[0] = 0
    array[0, : len(ids)] = ids
    array[1, : len(ends)] = ends
    return array
