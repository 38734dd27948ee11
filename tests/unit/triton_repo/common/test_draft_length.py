"""The draft-length rule: it drafts when that pays, stops when it does not, and finds its way back."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_repo.common import draft_length as rule
from triton_repo.common.draft_length import Acceptance, Choice, DraftLengthState, LinearCost


def measured(*, target_s: float = 0.010, per_token_s: float = 0.0002, draft_s: float = 0.001, rate: float = 0.8) -> DraftLengthState:
    state = DraftLengthState(draft=Acceptance.expecting(100 * rate, 100 * (1 - rate)))
    for _ in range(10):
        for k in (1, 3, 5, 7):
            state = rule.observe_verify(state, k + 1, target_s + per_token_s * k)
            state = rule.observe_draft(state, k, draft_s * k)
        state = rule.observe_plain(state, 4, 4 * target_s)
    return state


def test_drafts_more_when_more_is_taken():
    lengths = [rule.choose(measured(rate=rate), most_tokens=8).tokens for rate in (0.05, 0.5, 0.8, 0.98)]
    assert lengths == sorted(lengths)
    assert lengths[0] == 0
    assert lengths[-1] == 8


def test_drafts_less_when_drafting_costs_more():
    lengths = [rule.choose(measured(draft_s=draft_s), most_tokens=8).tokens for draft_s in (0.0005, 0.002, 0.004, 0.009)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 0


def test_takes_the_best_k_by_plain_arithmetic():
    state = measured()
    best = max(range(9), key=lambda k: rule.expected_tokens(0.8, k) / (0.010 + 0.0002 * k + 0.001 * k))
    assert rule.choose(state, most_tokens=8) == Choice("draft", best)


def test_prefers_a_free_lookup_of_equal_quality():
    state = replace(measured(), lookup=(Acceptance.expecting(8, 2),) * 3)
    assert rule.choose(state, most_tokens=5, lookup_tokens=5, match_tokens=3).source == "lookup"


def test_a_weak_lookup_gives_way_to_the_draft_model():
    assert rule.choose(measured(), most_tokens=5, lookup_tokens=5, match_tokens=1).source == "draft"


def test_match_lengths_are_estimated_apart():
    state = measured()
    for _ in range(20):
        state = rule.observe_round(state, Choice("lookup", 3), drafted=3, accepted=0, match_tokens=1)
    assert state.lookup[0].rate < 0.1
    assert state.lookup[2] == DraftLengthState().lookup[2]


@given(st.integers(0, 8), st.integers(0, 8), st.integers(0, 3), st.booleans())
def test_never_chooses_more_than_allowed(most: int, found: int, match: int, ready: bool):
    for state in (DraftLengthState(), measured()):
        choice = rule.choose(state, most_tokens=most, lookup_tokens=found, match_tokens=match, draft_available=ready)
        assert 0 <= choice.tokens <= most
        assert choice.source != "draft" or ready
        assert choice.source != "lookup" or choice.tokens <= found
        assert (choice.source == "none") == (choice.tokens == 0)


def test_before_any_measurement_it_tries_a_few():
    assert rule.choose(DraftLengthState(), most_tokens=8) == Choice("draft", rule.UNMEASURED_TOKENS)
    assert rule.choose(DraftLengthState(), most_tokens=8, lookup_tokens=8, match_tokens=1, draft_available=False) == Choice()


def test_fixed_uses_good_lookups_and_else_the_draft_model():
    assert rule.fixed(most_tokens=5, lookup_tokens=5, match_tokens=2) == Choice("lookup", 5)
    assert rule.fixed(most_tokens=5, lookup_tokens=5, match_tokens=1) == Choice("draft", 5)
    assert rule.fixed(most_tokens=5, draft_available=False) == Choice()
    assert rule.fixed(most_tokens=0) == Choice()


def test_probes_after_a_growing_number_of_tokens():
    state, gaps, since = measured(rate=0.02), [], 0
    for _ in range(400):
        choice = rule.choose(state, most_tokens=4)
        if choice.probe:
            gaps.append(since)
            since = 0
            state = rule.observe_round(state, choice, drafted=choice.tokens, accepted=0)
        else:
            assert choice.source == "none"
            since += 4
            state = rule.observe_round(state, choice, drafted=0, accepted=0, new_tokens=4)
    assert gaps[:7] == [16, 32, 64, 128, 256, 256, 256]


def test_recovers_when_the_text_becomes_predictable():
    draw = random.Random(3)
    state, used = replace(measured(), draft=Acceptance.expecting(1, 1)), []
    for i in range(600):
        rate = 0.0 if i < 100 else 0.95
        choice = rule.choose(state, most_tokens=4)
        accepted = next((n for n in range(choice.tokens) if draw.random() > rate), choice.tokens)
        state = rule.observe_round(state, choice, drafted=choice.tokens, accepted=accepted, new_tokens=accepted + 1)
        used.append(choice.tokens)
    assert sum(used[50:100]) <= 4
    assert sum(used[-100:]) > 300


def test_a_slower_machine_does_not_change_what_pays():
    state = measured()
    before = rule.choose(state, most_tokens=8)
    for _ in range(200):
        state = rule.observe_plain(state, 4, 4 * 0.050)
    assert before.source == rule.choose(state, most_tokens=8).source == "draft"


def test_forgetting_follows_a_change():
    estimate = Acceptance.expecting(1, 1)
    for _ in range(50):
        estimate = estimate.observe(4, 0)
    assert estimate.rate < 0.1
    for _ in range(15):
        estimate = estimate.observe(4, 4)
    assert estimate.rate > 0.8


def test_cost_is_a_line():
    cost = LinearCost()
    for _ in range(10):
        for tokens in (1, 4, 8):
            cost = cost.observe(tokens, 0.01 + 0.001 * tokens)
    assert cost.at(6) == pytest.approx(0.016, rel=0.03)


def test_a_stall_is_clipped():
    cost = LinearCost().observe(1, 0.01).observe(1, 10.0)
    assert cost.at(1) < 0.03


def test_a_new_request_can_overturn_what_others_left():
    state = measured()
    for _ in range(100):
        state = rule.observe_round(state, Choice("draft", 4), drafted=4, accepted=0)
    fresh = rule.next_request(state)
    assert fresh.draft.accepted + fresh.draft.rejected <= 6
    assert fresh.target_cost == state.target_cost


def test_draft_model_must_promise_more_than_it_costs_by_a_margin():
    """Just above break-even plain decoding is kept; clearly above, the draft model is asked."""
    state = rule.DraftLengthState(
        target_cost=rule.LinearCost().observe(1, 0.010).observe(2, 0.010),
        draft_cost=rule.LinearCost(serial=True).observe(1, 0.3),
    )

    def source(rate: float) -> str:
        sure = rule.Acceptance.expecting(1000 * rate, 1000 * (1 - rate))
        return rule.choose(replace(state, draft=sure), most_tokens=1).source

    assert source(0.36) == "none"
    assert source(0.60) == "draft"
