"""The pieces of the incremental detokenizer add up to the whole, without half characters."""

from hypothesis import given
from hypothesis import strategies as st

from triton_repo.common.detokenizer import INCOMPLETE, IncrementalDetokenizer


def decode_bytes(ids: list[int]) -> str:
    """A byte-level tokenizer."""
    return bytes(ids).decode("utf-8", "replace")


def decode_words(ids: list[int]) -> str:
    """A tokenizer that writes a space before each word but drops it at the beginning of what it decodes."""
    return "".join(f" w{i}" for i in ids).removeprefix(" ")


def pieces(decode, ids: list[int]) -> list[str]:
    detokenizer = IncrementalDetokenizer(decode)
    return [*(detokenizer.feed([token]) for token in ids), detokenizer.flush()]


def test_waits_for_the_whole_character():
    detokenizer = IncrementalDetokenizer(decode_bytes)
    first, *rest = "\N{GRINNING FACE}!".encode()
    assert detokenizer.feed([first]) == ""
    assert detokenizer.feed(rest[:2]) == ""
    assert detokenizer.feed(rest[2:]) == "\N{GRINNING FACE}!"


def test_flush_shows_what_never_became_a_character():
    assert "".join(pieces(decode_bytes, [0x61, 0xF0, 0x9F])) == f"a{INCOMPLETE}"


def test_keeps_spaces_between_words():
    assert pieces(decode_words, [1, 2, 3]) == ["w1", " w2", " w3", ""]


@given(st.text(max_size=20), st.lists(st.integers(1, 4), min_size=1, max_size=20))
def test_pieces_add_up_to_the_text(text: str, sizes: list[int]):
    ids, detokenizer, shown = list(text.encode()), IncrementalDetokenizer(decode_bytes), ""
    for i in range(len(ids)):
        size = sizes[i % len(sizes)]
        if ids:
            piece = detokenizer.feed(ids[:size])
            assert INCOMPLETE not in piece or INCOMPLETE in text
            shown, ids = shown + piece, ids[size:]
    assert shown + detokenizer.flush() == text


@given(st.lists(st.integers(0, 9), max_size=20))
def test_words_add_up(ids: list[int]):
    assert "".join(pieces(decode_words, ids)) == decode_words(ids)


@given(st.binary(max_size=30))
def test_any_bytes_add_up(raw: bytes):
    assert "".join(pieces(decode_bytes, list(raw))) == decode_bytes(list(raw))
