"""Sampled speculation: whoever drafts, the answer has the target's distribution; and what the seed promises."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.llm import Engine, Request, Result, Sampling, Speculation

VOCAB = 8
DRAWS, SEQUENCES = 20_000, 8
TARGET = np.array([1.1, -0.4, 2.0, 0.3, -1.2, 1.6, 0.0, 0.7], dtype=np.float32)
DRAFTS = np.array([[0.2, 0.9, 1.5, -0.3, 0.1, 1.9, -1.0, 0.4], [1.5, 1.0, -0.5, 0.8, 0.2, -0.2, 0.6, 1.2]], dtype=np.float32)
MOST_TOTAL_VARIATION = 0.015
MakeEngine = Callable[..., Engine]

SOURCES = {
    "model draft, sampled": Speculation(3, lookup=False, adaptive=False, sampled_drafts=True),
    "model draft, greedy": Speculation(3, lookup=False, adaptive=False, sampled_drafts=False),
    "lookup": Speculation(3, draft=False, adaptive=False),
    "model draft, sampled, and lookup": Speculation(3, sampled_drafts=True),
}
LIMITS = {"all": {}, "top-k": {"top_k": 4}, "top-p": {"top_p": 0.8}, "min-p": {"min_p": 0.25}}


def target(position: int, token: int) -> NDArray[np.float32]:
    return TARGET


def draft(position: int, token: int) -> NDArray[np.float32]:
    """Unlike the target's, and another one at every second position."""
    row: NDArray[np.float32] = DRAFTS[position % 2]
    return row


def answers(engine: Engine, sampling: Sampling, speculation: Speculation, draws: int = DRAWS) -> list[Result]:
    assert sampling.seed is not None
    requests = [
        Request((i,), draws // SEQUENCES, sampling=Sampling(**vars(sampling) | {"seed": sampling.seed + i}), speculation=speculation)
        for i in range(SEQUENCES)
    ]
    results = engine.generate(requests)
    return [r for r in results if isinstance(r, Result)]


def expected(sampling: Sampling) -> NDArray[np.float64]:
    """Temperature, top-k, top-p, min-p, computed the plain way."""
    p = np.exp(TARGET.astype(np.float64) / sampling.temperature)
    p /= p.sum()
    order = np.argsort(-p)
    kept = order[: sampling.top_k or VOCAB]
    before = np.concatenate([[0.0], p[order].cumsum()[:-1]])
    kept = [i for i in kept if before[order.tolist().index(i)] < sampling.top_p and p[i] >= sampling.min_p * p.max()]
    limited = np.zeros(VOCAB)
    limited[kept] = p[kept]
    return limited / limited.sum()


def total_variation(tokens: Sequence[int], p: NDArray[np.float64]) -> float:
    counts = Counter(tokens)
    return 0.5 * sum(abs(counts[i] / len(tokens) - p[i]) for i in range(VOCAB))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("limit", "temperature"), [*((limit, t) for limit in ("all", "top-k", "top-p") for t in (0.3, 1.0, 1.3)), ("min-p", 1.0)]
)
def test_answers_have_the_targets_distribution(table_engine: MakeEngine, source: str, limit: str, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, seed=17, **LIMITS[limit])  # type: ignore[arg-type]
    results = answers(table_engine(target, VOCAB, draft=draft), sampling, SOURCES[source])
    drafted, accepted = sum(r.drafted_tokens for r in results), sum(r.accepted_tokens for r in results)
    assert 0.02 * drafted < accepted < drafted, "some drafts must be taken and some refused"
    assert drafted > DRAWS / 8
    tokens = [t for r in results for t in r.output_ids]
    assert len(tokens) == DRAWS
    assert total_variation(tokens, expected(sampling)) < MOST_TOTAL_VARIATION


def test_sampled_drafts_are_taken_as_often_as_theory_says(table_engine: MakeEngine) -> None:
    """Rejection sampling accepts with probability sum(min(p, q)); to draw from p and compare would reach sum(p * q) only."""
    sampling = Sampling(seed=3)
    speculation = Speculation(1, lookup=False, adaptive=False, sampled_drafts=True)
    results = answers(table_engine(target, VOCAB, draft=lambda position, token: DRAFTS[0]), sampling, speculation)
    p, q = expected(sampling), np.exp(DRAFTS[0].astype(np.float64))
    q /= q.sum()
    rate = sum(r.accepted_tokens for r in results) / sum(r.drafted_tokens for r in results)
    assert rate == pytest.approx(np.minimum(p, q).sum(), abs=0.015)
    assert rate > (p * q).sum() + 0.1


def test_draft_logits_from_outside_are_judged_by_what_they_were_drawn_from(table_engine: MakeEngine) -> None:
    """One verification a request, as the orchestrator sends it: the first token's distribution is p."""
    engine = table_engine(target, VOCAB)
    q = np.exp(DRAFTS[0].astype(np.float64))
    q /= q.sum()
    drawn = np.random.default_rng(5).choice(VOCAB, size=DRAWS, p=q).tolist()
    requests = [
        Request((1,), 2, draft_ids=(token,), draft_logits=DRAFTS[:1], sampling=Sampling(seed=seed)) for seed, token in enumerate(drawn)
    ]
    results = [r for start in range(0, DRAWS, 500) for r in engine.generate(requests[start : start + 500]) if isinstance(r, Result)]
    assert total_variation([r.output_ids[0] for r in results], expected(Sampling())) < MOST_TOTAL_VARIATION
    assert sum(r.accepted_tokens for r in results) / DRAWS == pytest.approx(np.minimum(expected(Sampling()), q).sum(), abs=0.015)


def test_draft_logits_that_rule_the_draft_out_count_as_none(table_engine: MakeEngine) -> None:
    """A draft cannot have been drawn from a distribution that lacks it: it is judged as a certain proposal, so nothing is biased."""
    impossible = np.full((1, VOCAB), -np.inf, dtype=np.float32)
    impossible[0, 5] = 0.0
    tokens = []
    for seed in range(4000):
        request = Request((1,), 2, draft_ids=(2,), draft_logits=impossible, sampling=Sampling(seed=seed))
        tokens.append(table_engine(target, VOCAB, blocks=8).generate([request])[0].output_ids[0])  # type: ignore[union-attr]
    assert total_variation(tokens, expected(Sampling())) < 0.03


@pytest.mark.parametrize("source", SOURCES)
def test_same_seed_gives_the_same_answer(table_engine: MakeEngine, source: str) -> None:
    runs = [
        [r.output_ids for r in answers(table_engine(target, VOCAB, draft=draft), Sampling(seed=9), SOURCES[source], 800)] for _ in range(2)
    ]
    other = [r.output_ids for r in answers(table_engine(target, VOCAB, draft=draft), Sampling(seed=90), SOURCES[source], 800)]
    assert runs[0] == runs[1] != other


def test_a_seeded_answer_does_not_depend_on_who_drafted(table_engine: MakeEngine) -> None:
    """With a seed the draft model proposes its most likely token unless told otherwise; then drafting changes speed alone."""
    sampling = Sampling(temperature=0.9, seed=4)
    texts = {
        tuple(r.output_ids for r in answers(table_engine(target, VOCAB, draft=draft), sampling, speculation, 800))
        for speculation in (Speculation(), Speculation(3), Speculation(8, lookup=False), Speculation(5, draft=False, adaptive=False))
    }
    assert len(texts) == 1
