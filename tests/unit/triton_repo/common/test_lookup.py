"""Prompt lookup: longest match, latest occurrence, periodic continuation, and the same index however it was built."""

from hypothesis import given
from hypothesis import strategies as st

from triton_repo.common.lookup import MAX_MATCH_TOKENS, PromptLookup, Proposal


def by_search(tokens: list[int], limit: int) -> Proposal:
    """The definition, written as a plain search."""
    for n in range(min(MAX_MATCH_TOKENS, len(tokens) - 1), 0, -1):
        for start in range(len(tokens) - n - 1, -1, -1):
            if tokens[start : start + n] == tokens[-n:]:
                after = start + n
                period = len(tokens) - after
                return Proposal(tuple(tokens[after + i % period] for i in range(limit)), n)
    return Proposal()


def test_proposes_what_followed_the_longest_match():
    lookup = PromptLookup([1, 2, 3, 4, 9, 9, 3, 5, 1, 2, 3])
    assert lookup.propose(2) == Proposal((4, 9), 3)


def test_prefers_the_latest_occurrence():
    assert PromptLookup([7, 1, 7, 2, 7]).propose(1) == Proposal((2,), 1)


def test_continues_a_period_past_the_end():
    assert PromptLookup([5, 6, 5, 6]).propose(5).tokens == (5, 6, 5, 6, 5)


def test_finds_nothing_in_new_text():
    assert PromptLookup([1, 2, 3]).propose(4) == Proposal()
    assert PromptLookup([]).propose(4) == Proposal()
    assert PromptLookup([1, 1]).propose(0) == Proposal()


def test_distinguishes_large_ids():
    big = (1 << 21) - 1
    assert PromptLookup([big, 0, 5, 0, big, 6, big, 0]).propose(1) == Proposal((5,), 2)


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=6))
def test_equals_a_plain_search_at_every_length(prompt: list[int], rounds: list[list[int]]):
    lookup = PromptLookup(prompt)
    known = list(prompt)
    assert lookup.propose(4) == by_search(known, 4)
    for new in rounds:
        lookup.extend(new)
        known += new
        assert len(lookup) == len(known)
        assert lookup.propose(4) == by_search(known, 4)
