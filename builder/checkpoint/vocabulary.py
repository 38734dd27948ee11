"""What each token id means, and whether two vocabularies mean the same."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import Any, Literal

Spelling = Literal["byte_level", "metaspace", "plain"]
"""How a tokenizer file spells bytes: one printable character each (GPT-2's table), `▁` for a space and `<0x0A>` for a byte, or as UTF-8."""

SHOWN = 3
"""Differences that a message shows."""

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_METASPACE = "\u2581"


@dataclass(frozen=True)
class Vocabulary:
    """Text of each token id as the tokenizer file spells it; texts of `added` tokens are literal."""

    text_of: Mapping[int, str]
    spelling: Spelling = "plain"
    added: frozenset[int] = field(default_factory=frozenset)

    @property
    def end(self) -> int:
        """The id behind the last one that has a text."""
        return max(self.text_of, default=-1) + 1

    def bytes_of(self, token_id: int) -> bytes | None:
        """What the token stands for in a text; None when the id has no entry."""
        text = self.text_of.get(token_id)
        if text is None:
            return None
        return text.encode("utf-8", "surrogatepass") if token_id in self.added else _SPELLED[self.spelling](text)

    def id_of(self, text: str) -> int | None:
        """The id of a token by its spelling."""
        candidates = chain(sorted(self.added), self.text_of)
        return next((token_id for token_id in candidates if self.text_of.get(token_id) == text), None)


@dataclass(frozen=True)
class VocabularyDifference:
    """How many token ids mean different things, and the first few: id and text on either side, None where a side has no entry."""

    count: int
    first: tuple[tuple[int, str | None, str | None], ...]


def compare_vocabularies(left: Vocabulary, right: Vocabulary) -> VocabularyDifference | None:
    """None when every id that either has an entry for stands for the same bytes on both sides."""
    if left == right:
        return None
    different = sorted(_different(left, right))
    if not different:
        return None
    first = tuple((i, left.text_of.get(i), right.text_of.get(i)) for i in different[:SHOWN])
    return VocabularyDifference(len(different), first)


def spelling_of(tokenizer: Mapping[str, Any]) -> Spelling:
    """From the decoder of a tokenizer.json, or else from what splits its texts."""
    for part in ("decoder", "pre_tokenizer"):
        nodes = list(_nodes(tokenizer.get(part)))
        kinds = {node.get("type") for node in nodes}
        if "ByteLevel" in kinds:
            return "byte_level"
        if "Metaspace" in kinds or any(_replaces_metaspace(node) for node in nodes):
            return "metaspace"
    return "plain"


def _different(left: Vocabulary, right: Vocabulary) -> Iterator[int]:
    """Equal spelling of equally made entries is equal meaning; only the rest is turned to bytes."""
    alike = left.spelling == right.spelling
    for i in left.text_of.keys() | right.text_of.keys():
        same_text = left.text_of.get(i) == right.text_of.get(i)
        if same_text and alike and (i in left.added) == (i in right.added):
            continue
        if left.bytes_of(i) != right.bytes_of(i):
            yield i


def _nodes(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _nodes(one)


def _replaces_metaspace(node: Mapping[str, Any]) -> bool:
    pattern = node.get("pattern")
    return node.get("type") == "Replace" and isinstance(pattern, Mapping) and pattern.get("String") == _METASPACE


@cache
def _byte_of_character() -> Mapping[str, int]:
    """GPT-2's table (openai/gpt-2, encoder.py): printable Latin-1 bytes stand for themselves, the others for U+0100 and up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(0x100) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _from_byte_level(text: str) -> bytes:
    table = _byte_of_character()
    return bytes(table[c] for c in text) if all(c in table for c in text) else text.encode("utf-8", "surrogatepass")


def _from_metaspace(text: str) -> bytes:
    byte = _BYTE.fullmatch(text)
    return bytes([int(byte[1], 16)]) if byte else _from_plain(text.replace(_METASPACE, " "))


def _from_plain(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_SPELLED = {"byte_level": _from_byte_level, "metaspace": _from_metaspace, "plain": _from_plain}
