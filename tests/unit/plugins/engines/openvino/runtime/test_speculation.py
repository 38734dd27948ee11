"""Speculation inside the engine, over table models and a virtual clock: what is drafted when, and that nothing but speed changes."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.llm import Engine, Request, RequestError, Result, Sampling, Speculation
from plugins.engines.openvino.runtime.sequence import Status

VOCAB = 1000
MakeEngine = Callable[..., Engine]


def row(token: int) -> NDArray[np.float32]:
    logits = np.zeros(VOCAB, dtype=np.float32)
    logits[token % VOCAB] = 1.0
    return logits


def counting_up(position: int, token: int) -> NDArray[np.float32]:
    return row(token + 1)


def wrong(position: int, token: int) -> NDArray[np.float32]:
    return row(token + 7)


def right_until(length: int, later: Callable[[int, int], NDArray[np.float32]]) -> Callable[[int, int], NDArray[np.float32]]:
    return lambda position, token: counting_up(position, token) if position < length else later(position, token)


def answer(engine: Engine, request: Request) -> Result:
    result = engine.generate([request])[0]
    assert isinstance(result, Result)
    return result


ALL = {"plain": Speculation(), "both": Speculation(5), "draft": Speculation(5, lookup=False), "lookup": Speculation(5, draft=False)}


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("draft", [counting_up, wrong, right_until(20, wrong)])
def test_answer_is_the_same_whatever_is_drafted(table_engine: MakeEngine, draft: Callable[..., object], adaptive: bool) -> None:
    for speculation in ALL.values():
        engine = table_engine(counting_up, VOCAB, draft=draft)
        settings = Speculation(**vars(speculation) | {"adaptive": adaptive})
        assert answer(engine, Request((5, 6), 60, speculation=settings)).output_ids == tuple(range(7, 67))


def test_good_draft_saves_passes_and_is_counted(table_engine: MakeEngine) -> None:
    result = answer(table_engine(counting_up, VOCAB, draft=counting_up), Request((5,), 61, speculation=Speculation(5, adaptive=False)))
    assert result.passes == 1 + 10
    assert (result.drafted_tokens, result.accepted_tokens, result.lookup_drafted_tokens) == (50, 50, 0)


def test_lookup_needs_no_draft_model(table_engine: MakeEngine) -> None:
    engine = table_engine(lambda position, token: row((token + 1) % 8), VOCAB)
    result = answer(engine, Request((0, 1, 2, 3, 4, 5, 6, 7), 60, speculation=Speculation(5)))
    assert result.passes < 20
    assert result.lookup_accepted_tokens == result.accepted_tokens == 60 - result.passes


def test_lookup_comes_first_where_it_is_sure(table_engine: MakeEngine) -> None:
    """A periodic text: the draft model is right too, but costs time."""
    engine = table_engine(lambda position, token: row((token + 1) % 8), VOCAB, draft=lambda position, token: row((token + 1) % 8))
    result = answer(engine, Request(tuple(range(8)) * 4, 200, speculation=Speculation(5)))
    assert result.lookup_accepted_tokens > 0.8 * result.accepted_tokens


@pytest.mark.parametrize(("pass_s", "drafts"), [(0.0005, True), (0.030, False)])
def test_draft_model_is_used_when_it_pays(table_engine: MakeEngine, pass_s: float, drafts: bool) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up, draft_pass_s=pass_s)
    answer(engine, Request((5,), 200, speculation=Speculation(5, lookup=False)))
    result = answer(engine, Request((5,), 200, speculation=Speculation(5, lookup=False)))
    assert (result.accepted_tokens > 100) is drafts
    assert result.accepted_tokens > 0, "an expensive one is still probed now and then"


@pytest.mark.parametrize(("prompt", "drafts"), [(150, True), (300, False)])
def test_draft_model_is_not_asked_for_the_end_of_what_it_never_read(table_engine: MakeEngine, prompt: int, drafts: bool) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up)
    result = answer(engine, Request(tuple(range(prompt)), 100, speculation=Speculation(5, lookup=False, adaptive=False)))
    assert (result.drafted_tokens > 0) is drafts


def test_draft_length_goes_to_zero_and_recovers(table_engine: MakeEngine, clock: Callable[[], float]) -> None:
    """Wrong from token 100 to 400 of 990: hardly drafted there in the end, and used again afterwards."""
    draft = lambda position, token: wrong(position, token) if 100 <= position < 400 else counting_up(position, token)  # noqa: E731
    engine = table_engine(counting_up, VOCAB, draft=draft)
    sequence = engine.add(Request((5,), 985, speculation=Speculation(5, lookup=False)))
    drafted: Counter[str] = Counter()
    while not engine.idle:
        before, length = sequence.counts.drafted_tokens, len(sequence.tokens)
        engine.step()
        phase = "good" if length < 100 else "turning" if length < 250 else "bad" if length < 400 else "good again"
        drafted[phase] += sequence.counts.drafted_tokens - before
    assert drafted["good"] > 70
    assert drafted["bad"] < 25
    assert drafted["good again"] > 200


def test_speculation_never_costs_more_than_a_little(table_engine: MakeEngine, clock: Callable[[], float]) -> None:
    """A draft model that is always wrong: the probes cost less than 5 %."""

    def seconds(speculation: Speculation) -> float:
        engine = table_engine(counting_up, VOCAB, draft=wrong)
        answer(engine, Request((5,), 300, speculation=speculation))
        start = clock()
        answer(engine, Request((5,), 300, speculation=speculation))
        return clock() - start

    assert seconds(Speculation(5)) < 1.05 * seconds(Speculation())


def test_above_the_batch_limit_nothing_is_drafted(table_engine: MakeEngine) -> None:
    requests = [Request((i,), 30, speculation=Speculation(5, adaptive=False)) for i in range(4)]
    drafted = []
    for most in (4, 3):
        engine = table_engine(counting_up, VOCAB, draft=counting_up, limits={"max_speculating": most})
        results = [r for r in engine.generate(requests) if isinstance(r, Result)]
        assert [r.output_ids for r in results] == [tuple(range(i + 1, i + 31)) for i in range(4)]
        drafted.append(sum(r.drafted_tokens for r in results))
    assert drafted[0] > 80
    assert drafted[1] == 0


def test_sequences_in_company_draft_in_the_same_passes(table_engine: MakeEngine) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up)
    speculation = Speculation(4, adaptive=False)
    requests = [Request((10 * i,), 40, speculation=speculation if i % 2 else Speculation()) for i in range(4)]
    results = [r for r in engine.generate(requests) if isinstance(r, Result)]
    assert [r.output_ids for r in results] == [tuple(range(10 * i + 1, 10 * i + 41)) for i in range(4)]
    assert [r.drafted_tokens > 0 for r in results] == [False, True, False, True]


@pytest.mark.parametrize("offset", range(6))
def test_end_and_stop_inside_an_accepted_draft(table_engine: MakeEngine, offset: int) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up)
    speculation = Speculation(5, adaptive=False)
    end = answer(engine, Request((5,), 60, end_ids=(12 + offset,), speculation=speculation))
    stop = answer(engine, Request((5,), 60, stop_words=((11 + offset, 12 + offset),), speculation=speculation))
    assert (end.finish, stop.finish) == ("end", "stop")
    assert end.output_ids == stop.output_ids == tuple(range(6, 13 + offset))


def test_draft_that_does_not_fit_in_the_pass_is_cut_not_waited_for(table_engine: MakeEngine) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up, max_batched_tokens=6)
    requests = [Request((100 * i,), 30, speculation=Speculation(5, adaptive=False)) for i in range(3)]
    results = [r for r in engine.generate(requests) if isinstance(r, Result)]
    assert [r.output_ids for r in results] == [tuple(range(100 * i + 1, 100 * i + 31)) for i in range(3)]
    assert all(len(feeds) <= 3 for feeds in engine._runner.passes)  # type: ignore[attr-defined]


def test_drafts_give_way_before_sequences_do(table_engine: MakeEngine) -> None:
    """Room for both sequences at full length, but not for their drafts too."""
    engine = table_engine(counting_up, VOCAB, draft=counting_up, blocks=8)
    requests = [Request((100 * i,), 14, speculation=Speculation(5, adaptive=False)) for i in range(2)]
    results = [r for r in engine.generate(requests) if isinstance(r, Result)]
    assert [r.output_ids for r in results] == [tuple(range(100 * i + 1, 100 * i + 15)) for i in range(2)]
    assert engine.scheduler.preemptions == 0
    assert engine.blocks.used == 0


def test_drafts_that_found_no_room_are_not_judged_later(table_engine: MakeEngine) -> None:
    """A verification from outside takes more than its share of the pass; the sampled draft beside it waits, and is made anew."""
    engine = table_engine(lambda position, token: row((token + 1) % 8), VOCAB, draft=counting_up, max_batched_tokens=9)
    speculation = Speculation(5, sampled_drafts=True)
    tiny = Sampling(temperature=0.05)
    results = []
    for round_ in range(40):
        sequence = engine.add(Request(tuple(range(8)) * 2, 30, sampling=tiny, speculation=speculation))
        for _ in range(3):
            engine.step()
        engine.add(Request(tuple(i % 8 for i in range(round_ % 8, round_ % 8 + 20)), 9, draft_ids=(1,) * 8))
        while not engine.idle:
            engine.step()
            assert len(sequence.drafts_from) in (0, len(sequence.drafts))
        results.append(sequence.tokens[16:])
    assert results == [[i % 8 for i in range(30)]] * 40


def test_draft_model_that_fails_leaves_the_target_serving(table_engine: MakeEngine, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(position: int, token: int) -> NDArray[np.float32]:
        if position > 20:
            raise RuntimeError("out of memory")
        return counting_up(position, token)

    engine = table_engine(counting_up, VOCAB, draft=breaks)
    requests = [Request((i,), 60, speculation=Speculation(5, adaptive=False)) for i in (5, 100)]
    results = [r for r in engine.generate(requests) if isinstance(r, Result)]
    assert [r.output_ids for r in results] == [tuple(range(6, 66)), tuple(range(101, 161))]
    assert 0 < results[0].accepted_tokens < 25
    assert "out of memory" in caplog.text
    assert len(caplog.records) == 1


def test_target_that_fails_once_loses_nothing(table_engine: MakeEngine) -> None:
    """What raises in a pass leaves sequences as they were before it."""
    fails = [False, False, True, False, True]

    def sometimes(position: int, token: int) -> NDArray[np.float32]:
        if position % 7 == 3 and fails and fails.pop():
            raise RuntimeError("no")
        return counting_up(position, token)

    engine = table_engine(sometimes, VOCAB, draft=counting_up)
    sequence = engine.add(Request((5,), 40, speculation=Speculation(5)))
    raised = 0
    while not engine.idle:
        try:
            engine.step()
        except RuntimeError:
            raised += 1
    assert raised == 2
    assert sequence.tokens == list(range(5, 46))
    assert engine.blocks.used == 0


def test_preempted_sequence_gives_the_draft_models_blocks_back(table_engine: MakeEngine) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up, blocks=7)
    for i in range(2):
        engine.add(Request((100 * i,), 20, speculation=Speculation(3, adaptive=False)))
    draft = engine._speculator.draft
    assert draft is not None
    while not engine.idle:
        engine.step()
        engine._speculator._release_waiting()
        assert all(s.status is not Status.WAITING for s in draft._tracks)
    assert engine.scheduler.preemptions > 0
    assert draft.blocks.used == 0


def test_counters_tell_time_inside_the_model_from_the_rest(table_engine: MakeEngine, clock: Callable[[], float]) -> None:
    engine = table_engine(counting_up, VOCAB, draft=counting_up)
    answer(engine, Request((5,), 30, speculation=Speculation(5)))
    counters = engine.counters()
    assert counters.passes == len(engine._runner.passes)  # type: ignore[attr-defined]
    assert counters.infer_s == pytest.approx(clock())
    assert counters.step_s == pytest.approx(clock())


class TestSeveralSequences:
    def test_prompt_is_computed_once_and_answers_differ(self, table_engine: MakeEngine) -> None:
        flat = lambda position, token: np.zeros(VOCAB, dtype=np.float32)  # noqa: E731
        engine = table_engine(flat, VOCAB)
        result = answer(engine, Request(tuple(range(64)), 6, num_sequences=4, sampling=Sampling()))
        texts = {result.output_ids, *(r.output_ids for r in result.others)}
        assert len(texts) == 4
        assert [r.reused_tokens for r in result.others] == [63] * 3
        assert engine.blocks.used == 0

    def test_each_has_a_seed_of_its_own_that_repeats(self, table_engine: MakeEngine) -> None:
        flat = lambda position, token: np.zeros(VOCAB, dtype=np.float32)  # noqa: E731
        group = answer(table_engine(flat, VOCAB), Request((1, 2), 6, num_sequences=3, sampling=Sampling(seed=5)))
        alone = [answer(table_engine(flat, VOCAB), Request((1, 2), 6, sampling=Sampling(seed=5 + i))).output_ids for i in range(3)]
        assert [group.output_ids, *(r.output_ids for r in group.others)] == alone

    def test_cancelled_together(self, table_engine: MakeEngine) -> None:
        engine = table_engine(counting_up, VOCAB)
        sequence = engine.add(Request((1,), 50, num_sequences=3))
        for _ in range(4):
            engine.step()
        engine.cancel(sequence)
        assert engine.idle
        assert engine.blocks.used == 0
        assert [s.finish for s in (sequence, *sequence.followers)] == ["cancelled"] * 3


def test_full_queue_refuses_one_request_and_serves_the_others(table_engine: MakeEngine) -> None:
    engine = table_engine(counting_up, VOCAB, max_batch_size=2, limits={"max_waiting": 3})
    results = engine.generate([Request((i,), 4) for i in range(5)])
    assert [type(r) for r in results] == [Result] * 3 + [RequestError] * 2
    refused = results[-1]
    assert isinstance(refused, RequestError)
    assert (refused.code, refused.field) == ("QUEUE-FULL", "queue")


_BAD = [
    (Request((1,), 5, speculation=Speculation(9)), "max_draft_tokens"),
    (Request((1,), 5, speculation=Speculation(-1)), "max_draft_tokens"),
    (Request((1,), 5, draft_ids=(1,), speculation=Speculation(2)), "draft_input_ids"),
    (Request((1,), 5, num_sequences=0), "num_sequences"),
    (Request((1,), 5, num_sequences=9), "num_sequences"),
    (Request((1,), 5, draft_ids=(1,), num_sequences=2), "num_sequences"),
    (Request((1,), 5, sampling=Sampling(min_p=1.5)), "min_p"),
    (Request((1,), 5, sampling=Sampling(repetition_penalty=1e-39)), "repetition_penalty"),
    (Request((1,), 5, sampling=Sampling(presence_penalty=float("nan"))), "presence_penalty"),
    (Request((1,), 5, draft_ids=(1,), draft_logits=np.zeros((2, VOCAB), dtype=np.float32)), "draft_logits"),
    (Request((1,), 5, draft_ids=(1,), draft_logits=np.full((1, VOCAB), np.nan, dtype=np.float32)), "draft_logits"),
]


def test_logits_that_would_fill_the_memory_are_refused(table_engine: MakeEngine) -> None:
    engine = table_engine(counting_up, 50_000)
    for request in (
        Request((1,) * 6000, 5, want_context_logits=True),
        Request((1,), 1000, want_generation_logits=True, num_sequences=6),
    ):
        with pytest.raises(RequestError) as caught:
            engine.add(request)
        assert (caught.value.field, caught.value.found) == ("logits", "6000 rows")
    assert engine.idle


@pytest.mark.parametrize(("request_", "field"), _BAD)
def test_bad_requests_are_refused_by_field(table_engine: MakeEngine, request_: Request, field: str) -> None:
    error, good = table_engine(counting_up, VOCAB).generate([request_, Request((1,), 2)])
    assert isinstance(error, RequestError)
    assert (error.code, error.field) == ("INVALID_ARG", field)
    assert isinstance(good, Result)
