"""Text of an answer: stop words, minimum, end ids."""

import pytest

from triton_repo.tensorrt_llm_bls.text import TextStream


def decode(ids: list[int]) -> str:
    return "".join(chr(token) for token in ids)


def ids(text: str) -> list[int]:
    return [ord(letter) for letter in text]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_cuts_text_and_tokens_at_the_stop_word(size: int):
    stream, text, count = TextStream(decode, ("cd",)), "", 0
    letters = ids("abcdefg")
    for i in range(0, 7, size):
        piece, taken = stream.feed(letters[i : i + size])
        text, count = text + piece, count + taken
        if stream.stopped:
            break
    assert (text + stream.flush(), count) == ("ab", 4)


def test_shows_what_was_held_back_when_no_stop_word_came():
    stream = TextStream(decode, ("xyz",))
    assert stream.feed(ids("ax")) == ("a", 2)
    assert stream.flush() == "x"
    assert not stream.stopped


def test_stop_words_before_the_minimum_do_not_count():
    stream = TextStream(decode, ("b",), min_tokens=3)
    assert stream.feed(ids("abab")) == ("aba", 4)
    assert stream.stopped


def test_end_ids_make_no_text():
    assert TextStream(decode, end_ids=frozenset({ord("!")})).feed(ids("ab!")) == ("ab", 3)
