"""Ten thousand random requests through one small engine: nothing leaks, nothing hangs, each greedy text is that of the request alone."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pytest

from plugins.engines.openvino.runtime.llm import GREEDY, Engine, Request, RequestError, Result, Sampling, Sequence, Speculation

VOCAB = 128
REQUESTS, IN_FLIGHT = 10_000, 24
PROMPTS, LONGEST_ANSWER = 160, 12
BuildTiny = Callable[..., Path]
Known = dict[tuple[int, ...], tuple[int, ...]]
"""Prompts and what the engine answers to each one alone."""


@dataclass(frozen=True)
class Asked:
    """A request, the answer it must get (None: a sampled one), and after how many steps it is cancelled, if at all."""

    request: Request
    expected: tuple[int, ...] | None
    cancel_after: int | None = None


@pytest.fixture(scope="module")
def engine(build_tiny: BuildTiny) -> Engine:
    """Target and a draft that is often right (the target in 4 bits); fewer blocks and rows than the sequences in flight could fill."""
    target, draft = build_tiny(max_batched_tokens=40), build_tiny(role="draft", weights="int4")
    engine = Engine.load(target, draft, threads=1, max_cached_tokens=288)
    assert engine._speculator.draft is not None
    return engine


@pytest.fixture(scope="module")
def alone(build_tiny: BuildTiny) -> Engine:
    """Answers one request at a time, and remembers nothing."""
    return Engine.load(build_tiny(), threads=1, reuse=False)


@pytest.fixture(scope="module")
def known(alone: Engine) -> Known:
    """Each prompt answered alone; some share long beginnings, some repeat themselves."""
    random = Random(1)
    stem = [random.randrange(3, VOCAB) for _ in range(90)]
    prompts = set()
    while len(prompts) < PROMPTS:
        shared, own = random.choice((0, 0, 20, 32, 64, 90)), random.randrange(1, 40)
        period = random.choice((own, 4))
        own_tokens = [random.randrange(3, VOCAB) for _ in range(period)]
        prompts.add((*stem[:shared], *(own_tokens[i % period] for i in range(own))))
    return {p: alone.generate([Request(p, LONGEST_ANSWER)])[0].output_ids for p in sorted(prompts)}  # type: ignore[union-attr]


def expected_answer(text: tuple[int, ...], request: Request) -> tuple[int, ...]:
    """The engine's text, cut where the request says: an oracle of its own for lengths, end ids and stop words."""
    for length in range(max(1, request.min_tokens), request.max_new_tokens + 1):
        head = text[:length]
        if head[-1] in request.end_ids or any(head[-len(w) :] == w for w in request.stop_words):
            return head
    return text[: request.max_new_tokens]


def random_requests(random: Random, known: Known) -> Iterator[Asked]:
    while True:
        prompt = random.choice(list(known))
        text = known[prompt]
        request = Request(prompt, random.randrange(1, LONGEST_ANSWER + 1))
        ends = random.random() < 0.3
        request = replace(
            request,
            end_ids=(random.choice(text),) if ends else (),
            stop_words=(text[2:4],) if random.random() < 0.2 else (),
            speculation=_speculation(random),
        )
        kind = random.random()
        if kind < 0.15:
            yield _verification(random, request, text)
        elif kind < 0.25:
            sampling = Sampling(temperature=1.0, top_k=random.choice((0, 5)), seed=random.choice((None, 7)))
            yield Asked(replace(request, sampling=sampling, num_sequences=random.choice((1, 1, 3))), None)
        elif kind < 0.3:
            yield Asked(_adjusted(random, request, text), None)
        else:
            cancel_after = random.randrange(6) if random.random() < 0.15 else None
            yield Asked(request, expected_answer(text, request), cancel_after)


def _speculation(random: Random) -> Speculation:
    return Speculation(
        max_draft_tokens=random.choice((0, 2, 5, 8)),
        draft=random.random() < 0.6,
        lookup=random.random() < 0.6,
        adaptive=random.random() < 0.5,
    )


def _adjusted(random: Random, request: Request, text: tuple[int, ...]) -> Request:
    """Penalties, bans, a least length, logits and log probabilities asked for."""
    return replace(
        request,
        sampling=replace(GREEDY, repetition_penalty=random.choice((1.0, 1.3)), presence_penalty=random.choice((0.0, 0.5))),
        bad_words=random.choice(((), (text[1:2],), (text[2:4], text[5:6]))),
        min_tokens=random.choice((0, 3)),
        want_context_logits=random.random() < 0.3,
        want_log_probs=random.random() < 0.3,
    )


def _verification(random: Random, request: Request, text: tuple[int, ...]) -> Asked:
    """Drafts that are right up to a random place."""
    request = replace(request, speculation=Speculation(), stop_words=(), end_ids=())
    drafts = list(text[: random.randrange(1, 9)])
    wrong_at = random.randrange(len(drafts) + 1)
    drafts[wrong_at:] = [(t + 1) % VOCAB for t in drafts[wrong_at:]]
    expected = text[: min(wrong_at + 1, request.max_new_tokens)]
    if request.max_new_tokens == 1:
        expected = text[:1]
    return Asked(replace(request, draft_ids=tuple(drafts)), expected)


INVALID = (
    Request((), 4),
    Request((VOCAB,), 4),
    Request((-1, 3), 4),
    Request((3,), 0),
    Request((3,) * 384, 400),
    Request((3,), 12, draft_ids=(1,) * 9),
    Request((3,), 4, draft_ids=(VOCAB,)),
    Request((3,), 4, speculation=Speculation(99)),
    Request((3,), 4, sampling=Sampling(top_p=2.0)),
    Request((3,), 4, sampling=Sampling(temperature=float("inf"))),
    Request((3,), 4, stop_words=((),)),
    Request((3,), 4, num_sequences=-2),
)


def test_ten_thousand_random_requests(engine: Engine, alone: Engine, known: Known) -> None:
    random = Random(20)
    stream = random_requests(random, known)
    running: list[tuple[Asked, Sequence, int]] = []
    asked = done = refused = cancelled = steps = 0
    sampled: dict[Request, tuple[int, ...]] = {}
    while asked < REQUESTS or running:
        while asked < REQUESTS and len(running) < random.randrange(1, IN_FLIGHT):
            asked += 1
            if random.random() < 0.05:
                with pytest.raises(RequestError):
                    engine.add(random.choice(INVALID))
                refused += 1
                continue
            one = next(stream)
            running.append((one, engine.add(one.request), steps))
        engine.step()
        steps += 1
        assert steps < 20 * REQUESTS, "some request hangs"
        for one, sequence, since in list(running):
            if one.cancel_after is not None and steps - since > one.cancel_after and sequence.result is None:
                engine.cancel(sequence)
                cancelled += 1
            if all(s.result is not None for s in (sequence, *sequence.followers)):
                running.remove((one, sequence, since))
                _check(one, sequence, sampled, alone)
                done += 1
        if steps % 200 == 0:
            engine.blocks.assert_consistent([s.table for s in engine.scheduler.running])
    assert done + refused == REQUESTS
    assert refused > 300
    assert cancelled > 300
    assert engine.scheduler.preemptions > 30
    _assert_nothing_left(engine)


def _check(one: Asked, sequence: Sequence, sampled: dict[Request, tuple[int, ...]], alone: Engine) -> None:
    result = sequence.result
    assert result is not None
    if result.finish == "cancelled":
        assert one.expected is not None
        assert result.output_ids == one.expected[: len(result.output_ids)]
    elif one.expected is None and one.request.sampling.greedy:
        expected = alone.generate([replace(one.request, speculation=Speculation())])[0]
        assert isinstance(expected, Result)
        assert (result.output_ids, result.finish) == (expected.output_ids, expected.finish)
        assert result.log_probs == pytest.approx(expected.log_probs)
        if expected.context_logits is not None:
            assert (result.context_logits == expected.context_logits).all()  # type: ignore[union-attr]
    elif one.expected is None:
        key = replace(one.request, speculation=Speculation())
        if one.request.sampling.seed is not None:
            assert sampled.setdefault(key, result.output_ids) == result.output_ids, "the seed decides, not who drafted"
    else:
        assert result.output_ids == one.expected
    assert result.accepted_tokens <= result.drafted_tokens


def _assert_nothing_left(engine: Engine) -> None:
    assert engine.idle
    draft = engine._speculator.draft
    assert draft is not None
    for blocks in (engine.blocks, draft.blocks):
        assert blocks.used == 0
        assert blocks.free + blocks.cached == blocks.total
        blocks.assert_consistent([])
    assert not draft._tracks
    assert not engine._speculator._drafting
