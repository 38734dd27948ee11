"""Incremental detokenizer: text of new tokens, without ever showing half a character."""

from collections.abc import Callable, Sequence

INCOMPLETE = "\ufffd"


class IncrementalDetokenizer:
    """Decodes a short window of tokens that begins at the last token boundary where text came out.

    Tokenizers drop or add spaces at the beginning of what they decode, so the window keeps the tokens of the piece before. The pieces,
    with `flush`, add up to the decoding of all tokens at once. A trailing U+FFFD is a character whose bytes are not all there yet
    and waits.
    """

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._before = 0  # tokens of the window whose text was shown in an earlier piece
        self._shown = 0  # characters of the window that were shown
        self._held = ""

    def feed(self, tokens: Sequence[int]) -> str:
        """Take more tokens; return the text that became complete."""
        self._window.extend(tokens)
        whole = self._decode(self._window)
        stable = whole.rstrip(INCOMPLETE)
        piece = stable[self._shown :]
        self._held = whole[max(len(stable), self._shown) :]
        self._shown = max(self._shown, len(stable))
        if piece and not self._held:
            self._advance()
        return piece

    def flush(self) -> str:
        """What was held back, once no more tokens come."""
        held, self._held = self._held, ""
        self._shown += len(held)
        return held

    def _advance(self) -> None:
        """Keep only the tokens of the last piece as context."""
        del self._window[: self._before]
        self._before = len(self._window)
        self._shown = len(self._decode(self._window))
