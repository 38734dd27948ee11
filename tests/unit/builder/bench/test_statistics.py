"""Each number against one worked out by hand."""

from types import SimpleNamespace

import pytest

from builder.bench.measure import EngineWork
from builder.bench.statistics import Samples, Spread, likeness, python_ms_per_pass, python_share, rate_ratio, speedup, tokens_per_s


def test_tokens_per_second_is_all_tokens_over_all_seconds(made: SimpleNamespace) -> None:
    prompt = made.prompt("p")
    samples = [made.sample("a/x", [prompt], 1.0, tokens=10), made.sample("a/x", [prompt], 3.0, tokens=90)]
    assert tokens_per_s(samples) == 25.0


def test_spread_is_over_repeats(made: SimpleNamespace) -> None:
    prompt = made.prompt("p")
    samples = Samples(tuple(made.sample("a/x", [prompt], s, repeat=r) for r, s in enumerate((1.0, 2.0, 5.0))))
    assert samples.spread(tokens_per_s) == Spread(5.0, 2.0, 10.0)
    assert Samples(()).spread(tokens_per_s) is None


def test_a_stall_of_one_prompt_in_one_repeat_does_not_move_the_median(made: SimpleNamespace) -> None:
    one, two = made.prompt("one"), made.prompt("two")
    seconds = {one: (1.0, 9.0, 1.1), two: (8.0, 1.0, 1.1)}
    samples = Samples(tuple(made.sample("a/x", [p], s, repeat=r) for p in (one, two) for r, s in enumerate(seconds[p])))
    assert [s.answers.seconds for s in samples.middle] == [1.1, 1.1]
    spread = samples.spread(tokens_per_s)
    assert spread is not None
    assert (spread.median, spread.least, spread.greatest) == (20 / 2.2, 20 / 10.0, 20 / 2.2)
    plain = Samples(tuple(made.sample("b/x", [p], 2.2, repeat=r) for p in (one, two) for r in range(3)))
    assert speedup(samples, plain) == Spread(2.0, 4.4 / 10.0, 2.0)


def test_speedup_compares_the_same_prompts_and_equal_numbers_of_tokens(made: SimpleNamespace) -> None:
    one, two = made.prompt("one"), made.prompt("two")
    ours = Samples((made.sample("o/x", [one], 1.0, tokens=10), made.sample("o/x", [two], 1.0, tokens=10)))
    theirs = Samples((made.sample("t/x", [two], 6.0, tokens=20), made.sample("t/x", [one], 1.0, tokens=5)))
    # two: 6 s for 20 tokens is 3 s for our 10; one: 1 s for 5 is 2 s for our 10; together 5 s against our 2 s
    assert speedup(ours, theirs) == Spread(2.5, 2.5, 2.5)


def test_speedup_leaves_out_what_one_side_lacks(made: SimpleNamespace) -> None:
    one, two = made.prompt("one"), made.prompt("two")
    ours = Samples((made.sample("o/x", [one], 1.0), made.sample("o/x", [two], 1.0), made.sample("o/x", [one], 1.0, repeat=1)))
    theirs = Samples((made.sample("t/x", [one], 4.0),))
    assert speedup(ours, theirs) == Spread(4.0, 4.0, 4.0)
    assert speedup(ours, Samples(())) is None


def test_rate_ratio_needs_no_common_prompts(made: SimpleNamespace) -> None:
    together = Samples((made.sample("o/x", [made.prompt("a"), made.prompt("b")], 1.0, tokens=20),))
    alone = Samples((made.sample("o/x", [made.prompt("c")], 1.0, tokens=10),))
    assert rate_ratio(together, alone) == Spread(4.0, 4.0, 4.0)


def test_samples_are_chosen_by_system_kind_and_concurrency(made: SimpleNamespace) -> None:
    chat, code = made.prompt("a", "chat"), made.prompt("b", "code")
    samples = Samples(
        (
            made.sample("o/x", [chat], 1.0),
            made.sample("o/x", [code], 2.0),
            made.sample("o/x", [chat, code], 3.0),
            made.sample("t/x", [chat], 4.0),
        )
    )
    assert [s.answers.seconds for s in samples.of("o/x").all] == [1.0, 2.0]
    assert [s.answers.seconds for s in samples.of("o/x", kind="code").all] == [2.0]
    assert [s.answers.seconds for s in samples.of("o/x", concurrent=True).all] == [3.0]
    assert samples.kinds == ("chat", "code")


def test_python_time_is_per_pass_and_a_share_of_steps(made: SimpleNamespace) -> None:
    prompt = made.prompt("p")
    samples = [
        made.sample("tandem/plain", [prompt], 1.0, work=EngineWork(passes=100, python_s=0.02, step_s=1.0)),
        made.sample("tandem/plain", [prompt], 1.0, work=EngineWork(passes=300, python_s=0.06, step_s=1.0)),
    ]
    assert python_ms_per_pass(samples) == pytest.approx(0.2)
    assert python_share(samples) == pytest.approx(0.04)


def test_likeness_counts_equal_answers_and_equal_first_tokens(made: SimpleNamespace) -> None:
    one, two = made.prompt("one"), made.prompt("two")
    own = Samples((made.sample("o/x", [one], 1.0, tokens=10), made.sample("o/x", [two], 1.0, tokens=10)))
    others = Samples((made.sample("t/x", [one], 1.0, tokens=10), made.sample("t/x", [two], 1.0, tokens=4)))
    like = likeness(own, others)
    assert like is not None
    assert (like.equal_answers, like.answers, like.equal_first_tokens) == (1, 2, 7)
    different = Samples((made.sample("t/x", [one], 1.0, first=5),))
    assert likeness(own, different).equal_first_tokens == 0  # type: ignore[union-attr]
    assert likeness(own, Samples(())) is None
