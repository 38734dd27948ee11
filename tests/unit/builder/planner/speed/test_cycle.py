"""Rates of cycles, with step times that can be checked by hand."""

from dataclasses import replace

import pytest

from builder.planner.speed.batches import Drafting
from builder.planner.speed.constants import Overheads
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.model import Steps
from builder.spec.model import WorkloadSpec
from tests.unit.builder.planner.speed.conftest import LinearStepTime

FREE = Overheads(0.0, 0.0, "")
WORKLOAD = WorkloadSpec(input_tokens=1000, output_tokens=500)


class PromptStep(LinearStepTime):
    """A pass over prompts takes 5 ms and 10 us a token."""

    def prefill_s(self, batch: int, tokens: int) -> float:
        return 0.005 + 1e-5 * batch * tokens


def cycle_of(target: LinearStepTime, draft: LinearStepTime | None, overheads: Overheads = FREE) -> Cycle:
    return Cycle(Steps(target, draft), overheads, WORKLOAD)


def test_cycle_is_one_verification_k_drafts_and_the_overheads() -> None:
    cycle = cycle_of(LinearStepTime(0.020, 0.001), LinearStepTime(0.002), Overheads(0.0005, 0.003, ""))
    assert cycle.cycle_s(1, 4) == pytest.approx(0.020 + 5 * 0.001 + 4 * 0.0025 + 0.003)


def test_speed_up_without_prompts_is_the_law() -> None:
    cycle = cycle_of(LinearStepTime(0.020), LinearStepTime(0.002))
    assert cycle.speedup(1, 4, 0.7) == pytest.approx(0.020 * (1 - 0.7**5) / 0.3 / 0.028)


def test_prompts_share_the_time() -> None:
    cycle = cycle_of(LinearStepTime(0.020, 1e-5), LinearStepTime(0.002, 1e-6))
    answer_s = 500 * (0.020 + 1e-5)
    assert cycle.plain_tokens_per_s(1) == pytest.approx(500 / (answer_s + 1000 * 1e-5))
    assert cycle.prompt_s(1, 4, drafts=True) == pytest.approx(1000 * 1.1e-5)


def test_looked_up_drafts_cost_nothing() -> None:
    cycle = cycle_of(LinearStepTime(0.020), None)
    assert cycle.cycle_s(1, 4) == pytest.approx(0.020)
    assert cycle.draft_s(1) == 0


def test_break_even_acceptance_gives_a_speed_up_of_one() -> None:
    cycle = cycle_of(LinearStepTime(0.020, 1e-5), LinearStepTime(0.002, 1e-6), Overheads(0.0008, 0.001, ""))
    acceptance = cycle.break_even_acceptance(8, 4)
    assert acceptance is not None
    assert cycle.speedup(8, 4, acceptance) == pytest.approx(1.0)


def test_no_acceptance_makes_up_for_a_draft_as_slow_as_the_target() -> None:
    assert cycle_of(LinearStepTime(0.020), LinearStepTime(0.021)).break_even_acceptance(1, 4) is None


def test_best_draft_length_grows_with_acceptance() -> None:
    cycle = cycle_of(LinearStepTime(0.020), LinearStepTime(0.002))
    lengths = [cycle.best_draft_tokens(1, acceptance, range(1, 17)) for acceptance in (0.3, 0.6, 0.8, 0.95)]
    assert lengths == sorted(set(lengths))


def test_drafting_stops_where_verification_computes() -> None:
    """Verification of k tokens costs k+1 times the batch once products compute: the border is found to the batch."""
    drafting = Drafting(cycle_of(LinearStepTime(0.020, 5e-4), LinearStepTime(0.002)), 0.7, range(1, 6))
    stop = drafting.stop_batch()
    assert stop is not None
    assert drafting.wins(stop)
    assert not drafting.wins(stop + 1)


def test_draft_that_always_wins_has_no_border_and_one_that_never_does_has_zero() -> None:
    assert Drafting(cycle_of(LinearStepTime(0.020), LinearStepTime(0.001)), 0.7, (4,), adaptive=False).stop_batch() is None
    assert Drafting(cycle_of(LinearStepTime(0.020), LinearStepTime(0.030)), 0.7, (4,), adaptive=False).stop_batch() == 0


def test_long_context_moves_the_border_up() -> None:
    short = Drafting(cycle_of(LinearStepTime(0.020, 5e-4), LinearStepTime(0.002)), 0.7, range(1, 6)).stop_batch()
    longer = Drafting(cycle_of(LinearStepTime(0.020, 5e-4, 1e-6), LinearStepTime(0.002)), 0.7, range(1, 6)).stop_batch()
    assert short is not None
    assert longer is None or longer > short


def test_prompts_are_read_in_what_verification_leaves() -> None:
    """At batch 16 and k 5, 96 tokens are verified: of 196 a pass, 100 are left, so 1000 prompt tokens take ten passes of their own."""
    cycle = replace(cycle_of(LinearStepTime(0.020, 1e-5), None), prompt_pass_tokens=196)
    steps = replace(cycle, steps=Steps(PromptStep(), None))
    assert cycle.prompt_room(16, 5) == 100
    assert steps.prompt_s(16, 5, drafts=False) == pytest.approx(10 * (0.005 + 100 * 1e-5))
    assert replace(steps, prompt_pass_tokens=8192).prompt_s(16, 5, drafts=False) == pytest.approx(0.005 + 1000 * 1e-5)


def test_verification_that_does_not_fit_takes_more_passes() -> None:
    cycle = replace(cycle_of(LinearStepTime(0.020), None), prompt_pass_tokens=64)
    assert cycle.prompt_room(16, 5) < 0
    assert cycle.verify_s(16, 5) == pytest.approx(2 * 0.020)
    assert cycle.target_s(16) == pytest.approx(0.020)


def test_cycle_is_never_shorter_than_its_verification() -> None:
    cycle = cycle_of(LinearStepTime(0.020), LinearStepTime(0.002), Overheads(-0.004, -0.001, ""))
    assert cycle.cycle_s(1, 8) == cycle.verify_s(1, 8)


def test_a_batch_that_wins_again_beyond_a_full_pass_is_no_reason_to_draft_up_to_it() -> None:
    class Island(Drafting):
        def wins(self, batch: int) -> bool:
            return batch <= 5 or batch == 256

    cycle = cycle_of(LinearStepTime(0.020), LinearStepTime(0.001))
    assert Island(cycle, 0.7, range(1, 6)).stop_batch() == 5
