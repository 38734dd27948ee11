"""Sampler: distributions, penalties, bans, ends; verification keeps the engine's own distribution."""

from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino.runtime import sampler
from plugins.engines.openvino.runtime.request import GREEDY, Request, Sampling
from plugins.engines.openvino.runtime.sequence import Sequence

VOCAB = 6
ROW = np.array([0.3, 2.0, 1.2, -0.5, 0.9, 1.9], dtype=np.float32)


def softmax(row: NDArray[np.float32]) -> NDArray[np.float64]:
    weights = np.exp(row.astype(np.float64))
    return weights / weights.sum()


def sequence(**request: object) -> Sequence:
    return Sequence.of(Request(**{"input_ids": (0,), "max_new_tokens": 8} | request))  # type: ignore[arg-type]


def total_variation(counts: Counter[int], expected: NDArray[np.float64]) -> float:
    total = sum(counts.values())
    return 0.5 * sum(abs(counts[i] / total - expected[i]) for i in range(len(expected)))


def test_greedy_takes_the_largest_and_leaves_the_row_alone() -> None:
    row = ROW.copy()
    assert sampler.choose(row, sequence(sampling=GREEDY)) == 1
    assert (row == ROW).all()


@pytest.mark.parametrize("drafts", [(), (1,), (3,), (0, 0)])
def test_verification_keeps_the_targets_distribution(drafts: tuple[int, ...]) -> None:
    """Rejection sampling with a one-hot proposal: the first token's distribution is p whatever is drafted, likely or not."""
    counts: Counter[int] = Counter()
    rows = np.stack([ROW] * (len(drafts) + 1))
    for seed in range(20_000):
        one = sequence(draft_ids=drafts, sampling=Sampling(seed=seed))
        sampler.accept(rows, one)
        counts[one.tokens[1]] += 1
    assert total_variation(counts, softmax(ROW)) < 0.012


def test_draft_is_accepted_with_its_own_probability_and_replaced_from_the_rest() -> None:
    draft, accepted = 2, 0
    replaced: Counter[int] = Counter()
    for seed in range(20_000):
        one = sequence(draft_ids=(draft,), sampling=Sampling(seed=seed))
        sampler.accept(np.stack([ROW, ROW]), one)
        accepted += one.counts.accepted_tokens
        if not one.counts.accepted_tokens:
            replaced[one.tokens[1]] += 1
    p = softmax(ROW)
    residual = p.copy()
    residual[draft] = 0
    assert accepted / 20_000 == pytest.approx(p[draft], abs=0.01)
    assert replaced[draft] == 0
    assert total_variation(replaced, residual / residual.sum()) < 0.015


def test_sampled_verification_gives_the_same_tokens_as_plain_sampling() -> None:
    """The draw depends on seed and position only, so drafting changes speed, never the answer."""
    rows = np.random.default_rng(1).normal(size=(8, VOCAB)).astype(np.float32)
    for seed in range(50):
        plain = sequence(sampling=Sampling(seed=seed))
        for row in rows[:4]:
            sampler.accept(row[None], plain)
        drafted = sequence(draft_ids=tuple(plain.tokens[1:4]), sampling=Sampling(seed=seed))
        assert sampler.accept(rows[:4], drafted) == 4
        assert drafted.tokens == plain.tokens


def test_without_a_seed_requests_differ() -> None:
    flat = np.zeros((1, 1000), dtype=np.float32)
    drawn = set()
    for _ in range(20):
        one = sequence(sampling=Sampling())
        sampler.accept(flat, one)
        drawn.add(one.tokens[-1])
    assert len(drawn) > 10


def test_uniform_is_uniform_over_positions() -> None:
    draws = np.array([sampler.uniform(7, i) for i in range(5000)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.histogram(draws, bins=10, range=(0, 1))[0].min() > 400


def test_top_k_keeps_the_k_largest() -> None:
    kept = sampler.candidates(ROW, Sampling(top_k=3))
    assert kept.ids.tolist() == [1, 5, 2]
    assert kept.probabilities == pytest.approx(softmax(ROW[[1, 5, 2]]))


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass() -> None:
    p = softmax(ROW)
    kept = sampler.candidates(ROW, Sampling(top_p=float(p[1] + p[5]) - 1e-6))
    assert kept.ids.tolist() == [1, 5]
    assert kept.probabilities.sum() == pytest.approx(1)


def test_top_p_of_a_large_flat_vocabulary_is_not_cut_short() -> None:
    kept = sampler.candidates(np.zeros(5000, dtype=np.float32), Sampling(top_p=0.9))
    assert len(kept.ids) == pytest.approx(4500, abs=1)


def test_top_p_of_a_large_vocabulary_equals_full_sort() -> None:
    row = np.random.default_rng(0).normal(scale=4, size=5000).astype(np.float32)
    kept = sampler.candidates(row, Sampling(top_p=0.8))
    order = np.argsort(-row, kind="stable")
    mass = softmax(row)[order].cumsum()
    count = int((mass < 0.8).sum()) + 1
    assert kept.ids.tolist() == order[:count].tolist()
    assert kept.probabilities == pytest.approx(softmax(row)[kept.ids] / mass[count - 1])


@pytest.mark.parametrize("temperature", [1e-308, 1e-30, 1e30])
def test_extreme_temperatures_leave_numbers(temperature: float) -> None:
    kept = sampler.candidates(ROW, Sampling(temperature=temperature))
    assert np.isfinite(kept.probabilities).all()
    assert kept.probabilities.sum() == pytest.approx(1)
    assert kept.of(1) == kept.probabilities.max()


def test_min_p_keeps_what_is_likely_enough() -> None:
    """exp(1.2 - 2.0) = 0.449, exp(0.9 - 2.0) = 0.333"""
    assert sorted(sampler.candidates(ROW, Sampling(min_p=0.4)).ids.tolist()) == [1, 2, 5]
    assert sorted(sampler.candidates(ROW, Sampling(min_p=0.4, top_k=2)).ids.tolist()) == [1, 5]
    assert sampler.candidates(ROW, Sampling(min_p=1.0)).ids.tolist() == [1]


def test_min_p_of_a_large_vocabulary_is_not_cut_short() -> None:
    assert len(sampler.candidates(np.zeros(5000, dtype=np.float32), Sampling(min_p=0.5)).ids) == 5000


def test_ban_of_everything_is_none() -> None:
    everything = tuple((token,) for token in range(VOCAB))
    assert sampler.choose(ROW, sequence(bad_words=everything)) == 1
    assert sampler.choose(ROW, sequence(bad_words=everything, sampling=Sampling(seed=1))) in range(VOCAB)


def test_low_temperature_is_almost_greedy_and_zero_is_greedy() -> None:
    assert {sampler.choose(ROW, sequence(sampling=Sampling(temperature=0.01, seed=s))) for s in range(50)} == {1}
    assert sampler.choose(ROW, sequence(sampling=Sampling(temperature=0.0))) == 1


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(top_k=1, repetition_penalty=2.0), [0.3, 1.0, 1.2, -1.0, 0.9, 1.9]),
        (Sampling(top_k=1, presence_penalty=0.5), [0.3, 1.5, 1.2, -1.0, 0.9, 1.9]),
        (Sampling(top_k=1, frequency_penalty=0.5), [0.3, 1.0, 1.2, -1.0, 0.9, 1.9]),
    ],
)
def test_penalties_count_prompt_and_answer(sampling: Sampling, expected: list[float]) -> None:
    penalized = sampler._penalized(ROW, [1, 1, 3], sampling)
    assert penalized == pytest.approx([e if i != 3 or sampling.frequency_penalty == 0 else -1.0 for i, e in enumerate(expected)])
    assert sampler.choose(ROW, sequence(input_ids=(1, 1, 3), sampling=sampling)) == 5


def test_bad_word_is_banned_only_behind_its_beginning() -> None:
    words = ((4, 1), (5,))
    assert sampler.choose(ROW, sequence(input_ids=(4,), bad_words=words)) == 2
    assert sampler.choose(ROW, sequence(input_ids=(3,), bad_words=words)) == 1


def test_bad_word_is_banned_at_every_offset_of_a_verification() -> None:
    one = sequence(draft_ids=(1, 1), bad_words=((1, 1),))
    sampler.accept(np.stack([ROW] * 3), one)
    assert one.tokens == [0, 1, 5]
    assert one.counts.accepted_tokens == 1


def test_end_id_is_banned_until_min_tokens() -> None:
    one = sequence(draft_ids=(5, 5, 1), end_ids=(1,), min_tokens=3)
    sampler.accept(np.stack([ROW] * 4), one)
    assert one.tokens == [0, 5, 5, 1]
    assert one.finish == "end"


@pytest.mark.parametrize("offset", range(4))
def test_end_id_inside_an_accepted_block_ends_the_answer_there(offset: int) -> None:
    want = [2, 2, 2, 2]
    want[offset] = 4
    one = sequence(draft_ids=tuple(want[:3]), end_ids=(4,))
    rows = np.eye(VOCAB, dtype=np.float32)[want]
    assert sampler.accept(rows, one) == offset + 1
    assert one.finish == "end"
    assert one.tokens[1:] == want[: offset + 1]
    assert one.counts.accepted_tokens == min(offset + 1, 3)


@pytest.mark.parametrize("offset", range(3))
def test_stop_word_inside_an_accepted_block_ends_the_answer_there(offset: int) -> None:
    want = [2, 2, 2, 2]
    want[offset : offset + 2] = [3, 4]
    one = sequence(draft_ids=tuple(want[:3]), stop_words=((5,), (3, 4)))
    sampler.accept(np.eye(VOCAB, dtype=np.float32)[want], one)
    assert one.finish == "stop"
    assert one.tokens[1:] == want[: offset + 2]


def test_stop_word_that_began_in_the_prompt_does_not_count() -> None:
    one = sequence(input_ids=(3,), stop_words=((3, 4),))
    sampler.accept(np.eye(VOCAB, dtype=np.float32)[[4]], one)
    assert one.finish is None


def test_log_probability_is_that_of_the_raw_softmax() -> None:
    assert sampler.log_probability(ROW, 2) == pytest.approx(float(np.log(softmax(ROW)[2])), abs=1e-6)
