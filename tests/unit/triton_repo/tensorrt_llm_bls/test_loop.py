"""The draft-target loop over scripted models: the answer never depends on how it was drafted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triton_repo.common.seeds import request_seed
from triton_repo.tensorrt_llm_bls.loop import (
    CHUNK_TOKENS,
    LOOK_AGAIN_TOKENS,
    STREAM_CHUNK_TOKENS,
    DraftTargetLoop,
    LoopSettings,
    ModelFailedError,
    TokenArray,
)

END = 99
NextToken = Callable[[Sequence[int]], int]


@dataclass
class Call:
    """What one model was asked."""

    length: int
    new_tokens: int
    draft: tuple[int, ...]
    min_tokens: int
    seed: int | None


@dataclass
class ScriptedModel:
    """Generates by a rule; answers a draft like a verifying engine; takes as long as it is told."""

    rule: NextToken
    seconds: float = 0.0
    fail_at: int | None = None
    of_request: bool = False
    calls: list[Call] = field(default_factory=list)
    clock: "Clock | None" = None

    def generate(
        self, tokens: TokenArray, new_tokens: int, *, draft: TokenArray | None = None, min_tokens: int = 0, seed: int | None = None
    ) -> TokenArray:
        self.calls.append(Call(len(tokens), new_tokens, () if draft is None else tuple(draft.tolist()), min_tokens, seed))
        if self.fail_at is not None and len(self.calls) > self.fail_at:
            raise ModelFailedError("scripted", of_request=self.of_request)
        known, new = tokens.tolist(), []
        for i in range(new_tokens):
            new.append(self.rule(known))
            known.append(new[-1])
            if new[-1] == END or (draft is not None and (i >= len(draft) or draft[i] != new[-1])):
                break
        if self.clock is not None:
            self.clock.now += self.seconds * (1 if draft is not None else len(new))
        return np.array(new, dtype=np.int32)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def counting(known: Sequence[int]) -> int:
    return (known[-1] + 1) % 90


def wrong_now_and_then(known: Sequence[int]) -> int:
    return counting(known) if len(known) % 3 else 7


def run(loop: DraftTargetLoop) -> list[int]:
    return [token for new in loop for token in new.tolist()]


def expected(rule: NextToken, prompt: list[int], count: int) -> list[int]:
    known = list(prompt)
    for _ in range(count):
        known.append(rule(known))
        if known[-1] == END:
            break
    return known[len(prompt) :]


SPECULATE = LoopSettings(max_tokens=40, num_draft_tokens=4, lookup=True)


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("lookup", [True, False])
@pytest.mark.parametrize("draft_rule", [counting, wrong_now_and_then, lambda known: 5, None])
def test_answer_is_the_target_s_own(adaptive: bool, lookup: bool, draft_rule: NextToken | None):
    target, draft = ScriptedModel(counting), draft_rule and ScriptedModel(draft_rule)
    loop = DraftTargetLoop([1, 2, 3], replace(SPECULATE, adaptive=adaptive, lookup=lookup), target, draft)
    assert run(loop) == expected(counting, [1, 2, 3], 40)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=8),
    st.integers(1, 30),
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_answer_is_the_target_s_own_for_any_model(prompt: list[int], count: int, most: int, adaptive: bool, stream: bool, salt: int):
    def target_rule(known: Sequence[int]) -> int:
        value = hash((*known[-2:], salt)) % 7
        return END if value == 6 and len(known) > 12 else value

    def draft_rule(known: Sequence[int]) -> int:
        return target_rule(known) if hash((known[-1], len(known))) % 3 else 0

    wanted = LoopSettings(count, end_ids=frozenset({END}), num_draft_tokens=most, lookup=True, adaptive=adaptive, stream=stream)
    loop = DraftTargetLoop(prompt, wanted, ScriptedModel(target_rule), ScriptedModel(draft_rule))
    assert run(loop) == expected(target_rule, prompt, count)
    assert 0 <= loop.totals.accepted <= loop.totals.drafted
    assert loop.totals.lookup_drafted <= loop.totals.drafted


def test_never_asks_for_more_than_the_budget():
    target = ScriptedModel(counting)
    run(DraftTargetLoop([1], LoopSettings(7, num_draft_tokens=4, adaptive=False), target, ScriptedModel(counting)))
    assert all(call.length - 1 + call.new_tokens <= 7 for call in target.calls)
    assert all(len(call.draft) < call.new_tokens for call in target.calls)


def test_first_round_leaves_the_draft_model_alone():
    draft = ScriptedModel(counting)
    loop = iter(DraftTargetLoop([1, 2], SPECULATE, ScriptedModel(counting), draft))
    assert next(loop).tolist() == [3]
    assert draft.calls == []


def test_draft_is_asked_for_a_minimum_so_that_it_does_not_stop_early():
    draft = ScriptedModel(counting)
    run(DraftTargetLoop([1, 2], replace(SPECULATE, adaptive=False, lookup=False), ScriptedModel(counting), draft))
    assert draft.calls
    assert all(call.min_tokens == call.new_tokens for call in draft.calls)


def test_counts_by_comparing():
    loop = DraftTargetLoop(
        [1], LoopSettings(13, num_draft_tokens=3, adaptive=False), ScriptedModel(counting), ScriptedModel(lambda known: 5)
    )
    run(loop)
    assert loop.totals.drafted > 0
    assert loop.totals.accepted == expected(counting, [1], 13).count(5)


def test_figures_tell_lookup_from_the_draft_model():
    period = [1, 2, 3, 4] * 4
    loop = DraftTargetLoop(period, replace(SPECULATE, adaptive=False), ScriptedModel(lambda known: known[-4]), ScriptedModel(counting))
    run(loop)
    assert loop.totals.lookup_accepted == loop.totals.lookup_drafted == loop.totals.drafted > 0
    assert loop.totals.rounds < 12


@pytest.mark.parametrize(("stream", "sizes"), [(False, [CHUNK_TOKENS, CHUNK_TOKENS, 8]), (True, [1, *[STREAM_CHUNK_TOKENS] * 9, 3])])
def test_target_alone_is_asked_in_chunks(stream: bool, sizes: list[int]):
    target = ScriptedModel(counting)
    run(DraftTargetLoop([1], LoopSettings(40, stream=stream), target, ScriptedModel(counting)))
    assert [call.new_tokens for call in target.calls] == sizes


def test_looks_again_soon_when_the_rule_says_no():
    clock = Clock()
    target = ScriptedModel(counting, 0.01, clock=clock)
    draft = ScriptedModel(lambda known: 5, 0.02, clock=clock)
    loop = DraftTargetLoop([1], LoopSettings(200, num_draft_tokens=4), target, draft, clock=clock)
    run(loop)
    assert [call.new_tokens for call in target.calls[-20:]].count(LOOK_AGAIN_TOKENS) > 10
    assert loop.totals.drafted < 40


def test_rule_drafts_more_when_it_pays():
    clock = Clock()
    target, draft = ScriptedModel(counting, 0.01, clock=clock), ScriptedModel(counting, 0.001, clock=clock)
    loop = DraftTargetLoop([1], LoopSettings(200, num_draft_tokens=6), target, draft, clock=clock)
    run(loop)
    assert loop.totals.drafted / loop.totals.rounds > 4


def test_ends_at_any_end_id_and_keeps_it():
    wanted = LoopSettings(40, end_ids=frozenset({5, END}))
    assert run(DraftTargetLoop([1], wanted, ScriptedModel(counting))) == [2, 3, 4, 5]


def test_end_id_before_the_minimum_does_not_end():
    wanted = LoopSettings(8, min_tokens=6, end_ids=frozenset({5}))
    target = ScriptedModel(counting)
    assert run(DraftTargetLoop([1], wanted, target)) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert target.calls[0].min_tokens == 6


def test_minimum_shrinks_as_tokens_come():
    target = ScriptedModel(counting)
    run(DraftTargetLoop([1], LoopSettings(12, min_tokens=6, stream=True), target))
    assert [call.min_tokens for call in target.calls] == [6, 5, 1, 0]


def test_proposal_is_cut_after_an_end_id():
    target = ScriptedModel(lambda known: END if len(known) == 4 else 1)
    wanted = LoopSettings(20, end_ids=frozenset({END}), num_draft_tokens=6, adaptive=False)
    assert run(DraftTargetLoop([8, 9], wanted, target, ScriptedModel(lambda known: END if len(known) == 4 else 1))) == [1, 1, END]
    assert target.calls[-1].draft == (1, END)


@pytest.mark.parametrize("fail_at", [0, 2])
def test_serves_on_without_a_failed_draft_model(fail_at: int):
    failures: list[str] = []
    draft = ScriptedModel(counting, fail_at=fail_at)
    wanted = replace(SPECULATE, lookup=False, adaptive=False)
    loop = DraftTargetLoop([1], wanted, ScriptedModel(counting), draft, on_draft_failure=lambda error: failures.append(str(error)))
    assert run(loop) == expected(counting, [1], 40)
    assert failures == ["scripted"]
    assert len(draft.calls) == fail_at + 1


def test_target_failure_is_the_caller_s():
    with pytest.raises(ModelFailedError):
        run(DraftTargetLoop([1], SPECULATE, ScriptedModel(counting, fail_at=1)))


def test_a_target_that_gives_nothing_ends_the_answer():
    class Silent(ScriptedModel):
        def generate(self, *args: object, **kwargs: object) -> TokenArray:
            return np.empty(0, dtype=np.int32)

    assert run(DraftTargetLoop([1], SPECULATE, Silent(counting))) == []


def test_seeds_differ_by_round_and_name_the_request():
    target = ScriptedModel(counting)
    run(DraftTargetLoop([1], LoopSettings(40, stream=True, seed=11), target))
    seeds = [call.seed for call in target.calls if call.seed is not None]
    assert len(set(seeds)) == len(target.calls)
    assert {request_seed(seed) for seed in seeds} == {11}
    assert seeds[0] == 11


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("beyond", [50, 60, 1 << 20])
def test_a_draft_is_cut_at_an_id_that_the_target_does_not_have(adaptive: bool, beyond: int):
    """A draft model whose vocabulary is padded wider: the target refuses requests with ids that it does not have."""
    target, draft = (
        ScriptedModel(lambda known: (known[-1] + 1) % 50),
        ScriptedModel(lambda known: known[-1] + 1 if len(known) % 5 else beyond),
    )
    wanted = replace(SPECULATE, adaptive=adaptive, lookup=False, shared_vocab_size=50)
    loop = DraftTargetLoop([1, 2, 3], wanted, target, draft)
    assert run(loop) == expected(target.rule, [1, 2, 3], 40)
    verified = [call.draft for call in target.calls if call.draft]
    assert verified
    assert max(max(one) for one in verified) < 50
    assert loop.totals.drafted == sum(map(len, verified)), "what was cut off was not drafted"


@pytest.mark.parametrize("prompt", [[1, 95], [1, 2]])
def test_the_draft_model_is_not_asked_behind_an_id_that_it_does_not_have(prompt: list[int]):
    """A target whose vocabulary is padded wider: id 95 is in the prompt, or the answer's fifth token."""
    target, draft = ScriptedModel(lambda known: 95 if len(known) == 6 else (known[-1] + 1) % 50), ScriptedModel(counting)
    wanted = replace(SPECULATE, adaptive=False, lookup=False, shared_vocab_size=90)
    assert run(DraftTargetLoop(prompt, wanted, target, draft)) == expected(target.rule, prompt, 40)
    assert all(call.length < 7 for call in draft.calls)
    assert bool(draft.calls) == (95 not in prompt)


def test_lookup_goes_on_where_the_draft_model_cannot():
    period = [1, 2, 3, 95] * 4
    target = ScriptedModel(lambda known: known[-4])
    loop = DraftTargetLoop(period, replace(SPECULATE, adaptive=False, shared_vocab_size=90), target, ScriptedModel(counting))
    assert run(loop) == expected(target.rule, period, 40)
    assert loop.totals.lookup_accepted > 0


def test_caller_may_stop_at_any_round():
    loop = DraftTargetLoop([1], SPECULATE, ScriptedModel(counting), ScriptedModel(counting))
    for _, _new in zip(range(2), loop, strict=False):
        pass
    assert loop.totals.rounds in (2, 3)
