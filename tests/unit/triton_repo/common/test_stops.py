"""Stop words: the same cut however the text comes, and the token lists of the contract."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_repo.common.stops import StopMatcher, decode_word_lists, encode_word_lists


def run(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    matcher = StopMatcher(stops)
    shown = "".join(matcher.feed(piece) for piece in pieces)
    return shown + matcher.flush(), matcher.stopped


def test_cuts_before_the_stop_word():
    assert run(["END"], ["one EN", "D two"]) == ("one ", True)


def test_holds_back_only_what_may_become_a_stop_word():
    matcher = StopMatcher(["END"])
    assert matcher.feed("xEN") == "x"
    assert matcher.feed("E") == "EN"
    assert matcher.flush() == "E"
    assert not matcher.stopped


def test_swallows_what_follows():
    matcher = StopMatcher(["."])
    assert matcher.feed("a.b") == "a"
    assert matcher.feed("c") == ""
    assert matcher.flush() == ""


def test_without_stop_words_text_passes():
    assert run([], ["a", "b"]) == ("ab", False)
    assert run([""], ["a", "b"]) == ("ab", False)


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3), st.text("abc", max_size=20), st.data())
def test_does_not_depend_on_the_pieces(stops: list[str], text: str, data: st.DataObject):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert run(stops, pieces) == run(stops, list(text)) == run(stops, [text])


@given(st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3), st.text("abc", max_size=20))
def test_what_is_shown_holds_no_stop_word(stops: list[str], text: str):
    shown, stopped = run(stops, list(text))
    assert not any(stop in shown for stop in stops)
    assert text.startswith(shown)
    assert stopped == any(stop in text for stop in stops)


@given(st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=4).map(tuple), max_size=5))
def test_word_lists_survive_the_round_trip(words: list[tuple[int, ...]]):
    array = encode_word_lists(words)
    assert decode_word_lists(array) == tuple(words)
    assert decode_word_lists(array[None]) == tuple(words)


@pytest.mark.parametrize("array", [[[1, 2], [3, -1]], [[1, 2], [2, 1]], [[1], [1], [1]]])
def test_refuses_impossible_word_lists(array: list[list[int]]):
    with pytest.raises(ValueError, match="word list"):
        decode_word_lists(np.array(array, dtype=np.int32))
