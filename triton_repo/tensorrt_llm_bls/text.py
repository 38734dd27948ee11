"""The text of an answer: incremental detokenizing, stop words, and where the answer is cut."""

from collections.abc import Callable

from triton_repo.common.detokenizer import IncrementalDetokenizer
from triton_repo.common.stops import StopMatcher


class TextStream:
    """Takes the new tokens of each round, gives the text that may be shown.

    Stop words count only from token `min_tokens` on; text before is shown as it comes. End ids make no text.
    """

    def __init__(
        self, decode: Callable[[list[int]], str], stops: tuple[str, ...] = (), *, end_ids: frozenset[int] = frozenset(), min_tokens: int = 0
    ) -> None:
        self._detokenizer = IncrementalDetokenizer(decode)
        self._matcher = StopMatcher(stops)
        self._stops, self._end_ids, self._min_tokens = bool(stops), end_ids, min_tokens
        self.tokens = 0

    @property
    def stopped(self) -> bool:
        return self._matcher.stopped

    def feed(self, tokens: list[int]) -> tuple[str, int]:
        """The text to show now, and how many of these tokens belong to the answer (fewer when a stop word ended it)."""
        if not self._stops:
            self.tokens += len(tokens)
            return self._detokenizer.feed(self._visible(tokens)), len(tokens)
        text = ""
        for i, token in enumerate(tokens):
            self.tokens += 1
            piece = self._detokenizer.feed(self._visible([token]))
            text += self._matcher.feed(piece) if self.tokens >= self._min_tokens else piece
            if self._matcher.stopped:
                return text, i + 1
        return text, len(tokens)

    def flush(self) -> str:
        """The rest, once no more tokens come."""
        if self._matcher.stopped:
            return ""
        rest = self._matcher.feed(self._detokenizer.flush())
        return rest + self._matcher.flush()

    def _visible(self, tokens: list[int]) -> list[int]:
        return [token for token in tokens if token not in self._end_ids] if self._end_ids else tokens
