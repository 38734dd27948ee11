"""The runtime on the real OpenVINO with a tiny model: exact against transformers, and the same whatever else goes on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.runtime.llm import Engine
from plugins.engines.openvino.runtime.request import Request, RequestError, Result, Sampling
from plugins.engines.openvino.runtime.runner import Feed
from plugins.engines.openvino.runtime.sequence import Sequence

VOCAB = 128
RANDOM = np.random.default_rng(5)
PROMPT = tuple(int(i) for i in RANDOM.integers(3, VOCAB, 300))
OTHER = tuple(int(i) for i in RANDOM.integers(3, VOCAB, 70))
LONG_CONTEXT: dict[str, object] = {"options": {"tuned_for": "long_context"}}
BuildTiny = Callable[..., Path]


@pytest.fixture(scope="module")
def shared(build_tiny: BuildTiny) -> Engine:
    """One u8 engine for tests that leave it idle."""
    return Engine.load(build_tiny(), threads=1, max_cached_tokens=2048)


@pytest.fixture(scope="module")
def load(build_tiny: BuildTiny) -> Callable[..., Engine]:
    """A fresh engine: empty cache, own pool size."""

    def load(max_cached_tokens: int = 2048, *, reuse: bool = True, **changes: object) -> Engine:
        return Engine.load(build_tiny(**changes), threads=1, max_cached_tokens=max_cached_tokens, reuse=reuse)

    return load


def answer(engine: Engine, request: Request) -> Result:
    result = engine.generate([request])[0]
    assert isinstance(result, Result)
    return result


def speculate(engine: Engine, prompt: tuple[int, ...], new: int, propose: Callable[[int], tuple[int, ...]]) -> tuple[int, ...]:
    """The draft-target loop: verify, keep what is accepted and one token more, resend the grown sequence."""
    tokens = list(prompt)
    while (done := len(tokens) - len(prompt)) < new:
        tokens += answer(engine, Request(tuple(tokens), new - done, draft_ids=propose(done))).output_ids
    return tuple(tokens[len(prompt) :])


def test_logits_equal_transformers(load: Callable[..., Engine], tiny_checkpoint: Path) -> None:
    engine = load(kv_cache="fp32")
    request = Request(PROMPT, 5, want_context_logits=True, want_generation_logits=True, want_log_probs=True)
    result = answer(engine, request)
    window = (*PROMPT, *result.output_ids)
    expected = next(iter(ENGINE.parent_logits(tiny_checkpoint, [window])))
    assert result.context_logits is not None
    assert result.generation_logits is not None
    assert np.abs(result.context_logits - expected[:300]).max() < 1e-4
    assert np.abs(result.generation_logits - expected[299:-1]).max() < 1e-4
    assert result.output_ids == tuple(expected[299:-1].argmax(1))
    rows = expected[299:-1].astype(np.float64)
    logs = rows - np.log(np.exp(rows).sum(1, keepdims=True))
    assert result.log_probs == pytest.approx([logs[i, t] for i, t in enumerate(result.output_ids)], abs=1e-3)


@pytest.mark.parametrize(
    "changes",
    [{}, {"kv_cache": "fp32"}, {"weights": "int8"}, {"weights": "int4"}, LONG_CONTEXT, LONG_CONTEXT | {"weights": "int8"}],
    ids=str,
)
def test_grouping_of_tokens_into_passes_changes_no_bit(load: Callable[..., Engine], changes: dict[str, object]) -> None:
    """A prompt at once, in chunks of 1 to 64, and with other sequences in the pass: the same 300 rows of logits."""
    engine = load(**changes)
    expected = _rows(engine, [300], others=0)
    for chunks in ([1], [2], [3], [5, 2, 11], [17], [64], [33, 1]):
        for others in (0, 1, 2):
            assert (_rows(engine, chunks, others) == expected).all(), f"{chunks} with {others} others"


def _rows(engine: Engine, chunks: list[int], others: int) -> NDArray[np.float32]:
    """Logits of the prompt, fed through the runner in the given chunks while other sequences decode in the same passes."""
    blocks, other_blocks = list(range(12, 0, -1)), list(range(20, 50))
    company = [Feed(OTHER[i * 30 : i * 30 + 1 + i], 0, other_blocks[i * 2 :], i) for i in range(others)]
    rows, start, turn = [], 0, 0
    while start < len(PROMPT):
        chunk = PROMPT[start : start + chunks[turn % len(chunks)]]
        turn += 1
        logits = engine._runner.forward([*company, Feed(chunk, start, blocks, 0)])
        rows.append(logits[len(company) :].copy())
        start += len(chunk)
    return np.concatenate(rows)


def test_prefix_reuse_changes_no_token_and_saves_the_prefix(load: Callable[..., Engine]) -> None:
    request = Request((*PROMPT[:200], 7, 8, 9), 20)
    cold = answer(load(reuse=False), request)
    warm_engine = load()
    answer(warm_engine, Request(PROMPT[:200], 1))
    warm = answer(warm_engine, request)
    again = answer(warm_engine, request)
    assert cold.output_ids == warm.output_ids == again.output_ids
    assert (cold.reused_tokens, warm.reused_tokens, again.reused_tokens) == (0, 200, 202)


def test_two_prompts_that_part_inside_a_block_do_not_mix(load: Callable[..., Engine]) -> None:
    """The second copies the common start of a full block; the first one's cache must stay what it was."""
    engine = load()
    prompts = [PROMPT[:100], (*PROMPT[:80], *OTHER[:20])]
    first = [answer(engine, Request(p, 12)).output_ids for p in prompts]
    assert [answer(engine, Request(p, 12)).output_ids for p in prompts] == first
    assert [answer(load(reuse=False), Request(p, 12)).output_ids for p in prompts] == first


@pytest.mark.parametrize("wrong_at", [None, 0, 1, 3, 7])
def test_speculation_equals_target_only(load: Callable[..., Engine], wrong_at: int | None) -> None:
    """Right drafts, and drafts that go wrong at each place: same answer, and roll-back leaves no trace for the next round."""
    expected = answer(load(reuse=False), Request(PROMPT[:90], 60)).output_ids

    def propose(done: int) -> tuple[int, ...]:
        drafts = list(expected[done : done + 8])
        if wrong_at is not None and wrong_at < len(drafts):
            drafts[wrong_at] = (drafts[wrong_at] + 1) % VOCAB
        return tuple(drafts)

    assert speculate(load(), PROMPT[:90], 60, propose) == expected


def test_verification_is_one_pass_and_counts(shared: Engine) -> None:
    expected = answer(shared, Request(OTHER, 9)).output_ids
    passes = _count_passes(shared)
    result = answer(shared, Request(OTHER, 9, draft_ids=(*expected[:3], (expected[3] + 1) % VOCAB, 5)))
    assert passes() == 1
    assert result.output_ids == expected[:4]
    assert (result.finish, result.drafted_tokens, result.accepted_tokens) == ("verified", 5, 3)
    assert result.reused_tokens == len(OTHER) - 1


def _count_passes(engine: Engine) -> Callable[[], int]:
    calls = 0
    forward = engine._runner.forward

    def counted(feeds: list[Feed]) -> NDArray[np.float32]:
        nonlocal calls
        calls += 1
        return forward(feeds)

    engine._runner.forward = counted  # type: ignore[assignment,method-assign]

    def stop() -> int:
        engine._runner.forward = forward  # type: ignore[method-assign]
        return calls

    return stop


def test_drafts_beyond_the_length_asked_for_are_not_answered(shared: Engine) -> None:
    expected = answer(shared, Request(OTHER, 9)).output_ids
    result = answer(shared, Request(OTHER, 3, draft_ids=expected[:8]))
    assert (result.output_ids, result.finish, result.accepted_tokens) == (expected[:3], "length", 2)


def test_sampled_speculation_equals_sampled_target_only(shared: Engine) -> None:
    sampling = Sampling(temperature=0.8, top_k=20, top_p=0.9, seed=11)
    expected = answer(shared, Request(OTHER, 20, sampling=sampling)).output_ids
    tokens = list(OTHER)
    while (done := len(tokens) - len(OTHER)) < 20:
        request = Request(tuple(tokens), 20 - done, draft_ids=(*expected[done : done + 2], 4), sampling=sampling)
        tokens += answer(shared, request).output_ids
    assert tuple(tokens[len(OTHER) :]) == expected


def test_mixed_batch_equals_each_alone(load: Callable[..., Engine]) -> None:
    """Long and short prompts, decode, verification, sampling, one-token prompts, all in the same passes."""
    requests = [
        Request(PROMPT, 10),
        Request(PROMPT[:1], 12),
        Request(OTHER, 9, draft_ids=(3, 4, 5)),
        Request(OTHER[:40], 15, sampling=Sampling(seed=3, repetition_penalty=1.2)),
        Request(PROMPT[:33], 7, want_context_logits=True),
        Request(PROMPT[:120], 20, end_ids=tuple(range(0, VOCAB, 2)), min_tokens=2),
    ]
    alone = [answer(load(reuse=False), r) for r in requests]
    together = load(max_batched_tokens=48).generate(requests)
    for one, other in zip(alone, together, strict=True):
        assert isinstance(other, Result)
        assert (one.output_ids, one.finish) == (other.output_ids, other.finish)
    assert (alone[4].context_logits == together[4].context_logits).all()  # type: ignore[union-attr]


def test_tiny_pool_preempts_and_loses_nothing(load: Callable[..., Engine]) -> None:
    requests = [Request(PROMPT[i : i + 60], 60) for i in range(0, 160, 40)]
    alone = [answer(load(reuse=False), r).output_ids for r in requests]
    engine = load(max_cached_tokens=256)
    results = engine.generate(requests)
    assert engine.scheduler.preemptions > 0
    assert [r.output_ids for r in results if isinstance(r, Result)] == alone
    engine.blocks.assert_consistent([])


_BAD = [
    (Request((), 5), "input_lengths"),
    (Request((1,) * 385, 5), "input_lengths"),
    (Request((1, VOCAB), 5), "input_ids"),
    (Request((1, -1), 5), "input_ids"),
    (Request((1,), 0), "request_output_len"),
    (Request((1,) * 300, 300), "request_output_len"),
    (Request((1,), 20, draft_ids=(1,) * 9), "draft_input_ids"),
    (Request((1,), 5, draft_ids=(VOCAB,)), "draft_input_ids"),
    (Request((1,), 5, min_tokens=-1), "min_tokens"),
    (Request((1,), 5, stop_words=((),)), "stop_words_list"),
    (Request((1,), 5, bad_words=((VOCAB,),)), "bad_words_list"),
    (Request((1,), 5, end_ids=(-1,)), "end_id"),
    (Request((1,), 5, sampling=Sampling(temperature=-1)), "temperature"),
    (Request((1,), 5, sampling=Sampling(temperature=float("nan"))), "temperature"),
    (Request((1,), 5, sampling=Sampling(top_p=0)), "runtime_top_p"),
    (Request((1,), 5, sampling=Sampling(top_k=-1)), "runtime_top_k"),
    (Request((1,), 5, sampling=Sampling(repetition_penalty=0)), "repetition_penalty"),
    (Request((1,), 5, sampling=Sampling(seed=-1)), "seed"),
]


def test_bad_requests_are_refused_by_field_and_disturb_nobody(shared: Engine) -> None:
    good = Request(OTHER, 12)
    expected = answer(shared, good).output_ids
    results = shared.generate([good, *(request for request, _ in _BAD), good])
    for (_, name), error in zip(_BAD, results[1:-1], strict=True):
        assert isinstance(error, RequestError)
        assert (error.code, error.field) == ("INVALID_ARG", name)
        assert error.needed
    assert [r.output_ids for r in (results[0], results[-1]) if isinstance(r, Result)] == [expected, expected]


def test_cancelled_sequence_answers_what_it_has_and_gives_its_blocks_back(shared: Engine) -> None:
    sequence = shared.add(Request(OTHER, 50))
    for _ in range(5):
        shared.step()
    shared.cancel(sequence)
    assert isinstance(sequence, Sequence)
    assert sequence.result is not None
    assert sequence.result.finish == "cancelled"
    assert len(sequence.result.output_ids) == 5
    assert shared.idle
    assert shared.blocks.used == 0


def test_step_without_work_does_nothing(shared: Engine) -> None:
    shared.step()
    assert shared.idle


def test_fast_draft_engine_may_feed_single_tokens(load: Callable[..., Engine]) -> None:
    engine = load(role="draft", options={"exact_draft": False})
    assert engine._runner.min_rows == 1
    assert len(answer(engine, Request(PROMPT[:50], 8)).output_ids) == 8
