"""Scheduler: order, token budget, chunks, waiting for blocks, preemption. No model: every computed token is accepted as 1."""

from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.engines.openvino.runtime.block_manager import BlockManager
from plugins.engines.openvino.runtime.request import Request
from plugins.engines.openvino.runtime.scheduler import Limits, Scheduler, Work
from plugins.engines.openvino.runtime.sequence import Sequence, Status

SIZE = 4


def make(total: int = 16, batch: int = 4, budget: int = 16, min_rows: int = 2) -> Scheduler:
    return Scheduler(BlockManager(total, SIZE), Limits(batch, budget, min_rows))


def add(scheduler: Scheduler, prompt: int, new: int = 4, *, first: int = 0, drafts: int = 0, context: bool = False) -> Sequence:
    ids = tuple(range(first, first + prompt))
    sequence = Sequence.of(Request(ids, new, draft_ids=(1,) * drafts, want_context_logits=context))
    scheduler.add(sequence)
    return sequence


def finish_pass(scheduler: Scheduler, plan: list[Work]) -> None:
    """What the engine does after a pass, with a model that always says 1."""
    for work in plan:
        sequence = work.sequence
        cached = sequence.table.cached_tokens + work.feed
        if work.sample:
            cached += len(sequence.drafts)
            for _ in range(len(sequence.drafts) + 1):
                sequence.accept(1)
            if sequence.drafts:
                sequence.finish = sequence.finish or "verified"
        scheduler.blocks.commit(sequence.table, sequence.tokens, cached)
        if sequence.finish is not None:
            scheduler.finish(sequence)
    scheduler.blocks.assert_consistent([s.table for s in scheduler.running])


def test_admits_in_order_up_to_the_batch_size() -> None:
    scheduler = make(batch=2)
    first, second, third = (add(scheduler, 3, first=i * 10) for i in range(3))
    plan = scheduler.schedule()
    assert [w.sequence for w in plan] == [first, second]
    assert third.status is Status.WAITING


def test_long_prompt_is_fed_in_chunks_within_the_budget() -> None:
    scheduler = make(budget=8)
    sequence = add(scheduler, 19)
    feeds = []
    while not sequence.output_tokens:
        plan = scheduler.schedule()
        feeds.append((plan[0].feed, plan[0].sample))
        finish_pass(scheduler, plan)
    assert feeds == [(8, False), (8, False), (3, True)]


def test_decode_goes_before_a_new_prompt_in_the_same_pass() -> None:
    scheduler = make(budget=8)
    first = add(scheduler, 3)
    finish_pass(scheduler, scheduler.schedule())
    second = add(scheduler, 19, first=100)
    plan = scheduler.schedule()
    assert [(w.sequence, w.feed) for w in plan] == [(first, 1), (second, 6)]


def test_verification_is_never_split() -> None:
    scheduler = make(budget=6)
    sequence = add(scheduler, 4, new=8, drafts=5)
    plan = scheduler.schedule()
    assert [(w.feed, w.sample) for w in plan] == [(3, False)]
    finish_pass(scheduler, plan)
    plan = scheduler.schedule()
    assert [(w.feed, w.rows, w.sample) for w in plan] == [(1, 6, True)]
    finish_pass(scheduler, plan)
    assert sequence.finish == "verified"


def test_two_pending_tokens_and_drafts_get_on_under_the_smallest_budget() -> None:
    scheduler = make(budget=4)
    add(scheduler, 2, new=8, drafts=3)
    assert [(w.feed, w.sample) for w in scheduler.schedule()] == [(1, False)]


def test_waits_when_blocks_run_out_and_gets_on_when_they_are_free() -> None:
    scheduler = make(total=4, budget=32)
    first, second = add(scheduler, 12, new=1), add(scheduler, 12, first=100, new=1)
    plan = scheduler.schedule()
    assert [w.sequence for w in plan] == [first]
    finish_pass(scheduler, plan)
    assert [w.sequence for w in scheduler.schedule()] == [second]


def test_last_admitted_is_preempted_and_later_continues_with_its_tokens() -> None:
    scheduler = make(total=4, budget=32)
    first, second = add(scheduler, 7, new=9), add(scheduler, 7, first=100, new=9)
    for _ in range(40):
        if scheduler.idle:
            break
        finish_pass(scheduler, scheduler.schedule())
    assert scheduler.preemptions > 0
    assert first.finish == second.finish == "length"
    assert first.output_tokens == second.output_tokens == 9


def test_what_a_preempted_sequence_computes_again_is_not_counted_as_reused() -> None:
    scheduler = make(total=4, budget=32)
    first, second = add(scheduler, 7, new=9), add(scheduler, 7, first=100, new=9)
    while not scheduler.idle:
        finish_pass(scheduler, scheduler.schedule())
    assert scheduler.preemptions > 0
    assert first.counts.reused_tokens == second.counts.reused_tokens == 0


def test_a_chunk_leaves_one_token_for_each_sequence_behind_it() -> None:
    scheduler = make(budget=8)
    decoding = add(scheduler, 3)
    finish_pass(scheduler, scheduler.schedule())
    long = add(scheduler, 40, first=100)
    finish_pass(scheduler, scheduler.schedule())
    scheduler.running.sort(key=lambda s: s is decoding)
    assert [(w.sequence, w.feed) for w in scheduler.schedule()] == [(long, 6), (decoding, 1)]


def test_prompt_rows_that_are_wanted_are_all_computed() -> None:
    scheduler = make()
    add(scheduler, 9, new=1)
    finish_pass(scheduler, scheduler.schedule())
    again = add(scheduler, 9, new=1, context=True)
    assert [(w.sequence, w.feed) for w in scheduler.schedule()] == [(again, 9)]


def test_cancelled_while_waiting_or_running_leaves_no_block_used() -> None:
    scheduler = make(batch=1)
    running, waiting = add(scheduler, 3), add(scheduler, 3, first=50)
    scheduler.schedule()
    scheduler.finish(waiting)
    scheduler.finish(running)
    assert scheduler.idle
    assert scheduler.blocks.used == 0


_PROMPT = st.tuples(st.integers(1, 20), st.integers(1, 8), st.integers(0, 3), st.integers(0, 1), st.booleans())


@settings(max_examples=150, deadline=None)
@given(total=st.integers(7, 12), budget=st.integers(4, 24), batch=st.integers(1, 5), prompts=st.lists(_PROMPT, min_size=1, max_size=8))
def test_every_request_ends_whatever_the_pool(total: int, budget: int, batch: int, prompts: list[tuple[int, int, int, int, bool]]) -> None:
    """Any mix of prompts that fit alone gets through, within the budget, and no block is left in use."""
    scheduler = make(total, batch, budget)
    sequences = [add(scheduler, n, new, drafts=k, first=f, context=c) for n, new, k, f, c in prompts]
    for _ in range(600):
        if scheduler.idle:
            break
        plan = scheduler.schedule()
        assert plan
        assert sum(max(w.rows, 2) for w in plan) <= budget
        assert len(plan) <= batch
        finish_pass(scheduler, plan)
    assert all(s.finish is not None for s in sequences)
    assert scheduler.blocks.used == 0
