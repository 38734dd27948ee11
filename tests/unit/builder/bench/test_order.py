"""Every system meets every prompt in every repeat, in turn, and none is always first."""

from collections import Counter
from types import SimpleNamespace

from builder.bench.order import count_calls, run_order
from builder.bench.systems import CONCURRENT, SINGLE, with_draft


def test_all_systems_take_turns_on_each_prompt(made: SimpleNamespace) -> None:
    prompts = [made.prompt(f"p{i}") for i in range(4)]
    systems = [made.system(key) for key in ("a/x", "b/x", "c/x")]
    calls = list(run_order(systems, systems[:1], prompts, repeats=2, concurrency=6))
    steps = [calls[i : i + 3] for i in range(0, 12, 3)]
    assert [len({c.prompts for c in step}) for step in steps] == [1, 1, 1, 1], "one prompt at a time"
    assert all({c.system.key for c in step} == {"a/x", "b/x", "c/x"} for step in steps)
    assert [step[0].system.key for step in steps] == ["a/x", "b/x", "c/x", "a/x"], "the first one changes"
    assert calls[13].system.key == "b/x", "and in the next repeat another one starts"
    assert Counter((c.system.key, c.prompts, c.repeat) for c in calls).most_common(1)[0][1] == 1


def test_requests_at_once_come_after_each_repeat_and_repeat_prompts_when_there_are_too_few(made: SimpleNamespace) -> None:
    prompts = [made.prompt("p0"), made.prompt("p1")]
    calls = list(run_order([made.system("a/x")], [made.system("a/x"), made.system("b/x")], prompts, repeats=1, concurrency=3))
    assert [c.concurrent for c in calls] == [False, False, True, True]
    assert [p.prompt.id for p in calls[-1].prompts] == ["p0", "p1", "p0"]


def test_count_is_the_number_of_calls(made: SimpleNamespace) -> None:
    systems, prompts = [made.system("a/x"), made.system("b/x")], [made.prompt("p0"), made.prompt("p1")]
    for concurrency in (0, 1, 4):
        calls = list(run_order(systems, systems[:1], prompts, repeats=3, concurrency=concurrency))
        assert len(calls) == count_calls(systems, systems[:1], 2, repeats=3, concurrency=concurrency)


def test_a_pair_without_draft_has_no_system_that_needs_one() -> None:
    assert {s.mode for s in with_draft(SINGLE, has_draft=False)} == {"plain", "lookup", "lookup_5", "lookup_10", "q8_0", "q4_0"}
    assert with_draft(CONCURRENT, has_draft=True) == CONCURRENT
