"""Overheads found from two runs."""

from dataclasses import replace

import pytest

from builder.errors import RefusedError
from builder.planner.speed.acceptance import expected_length
from builder.planner.speed.calibration import calibrate
from builder.planner.speed.constants import Overheads
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.measured import ScaledStepTime
from builder.planner.speed.measured_file import CalibrationRun
from builder.planner.speed.model import Steps
from builder.spec.model import WorkloadSpec
from tests.unit.builder.planner.speed.conftest import LinearStepTime

ACCEPTANCE = 0.75
KNOWN = Cycle(
    Steps(LinearStepTime(0.020, 1e-5), LinearStepTime(0.002, 1e-6)), Overheads(0.0009, 0.0014, ""), WorkloadSpec(output_tokens=300)
)


def run_of(cycle: Cycle, draft_tokens: int, batch: int = 1, *, plain: bool = True) -> CalibrationRun:
    return CalibrationRun(
        draft_tokens=draft_tokens,
        batch=batch,
        tokens_per_s=cycle.speculative_tokens_per_s(batch, draft_tokens, ACCEPTANCE),
        acceptance_length=expected_length(ACCEPTANCE, draft_tokens),
        plain_tokens_per_s=cycle.plain_tokens_per_s(batch) if plain else None,
    )


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("plain", [True, False])
def test_two_runs_give_both_overheads_and_the_acceptance(batch: int, plain: bool) -> None:
    found = calibrate([run_of(KNOWN, 2, batch, plain=plain), run_of(KNOWN, 7, batch, plain=plain)], KNOWN)
    assert found.overheads.draft_step_s == pytest.approx(0.0009)
    assert found.overheads.cycle_s == pytest.approx(0.0014)
    assert found.acceptance == pytest.approx(ACCEPTANCE)


def test_slower_machine_scales_the_target() -> None:
    slow = replace(KNOWN, steps=replace(KNOWN.steps, target=ScaledStepTime(KNOWN.steps.target, 1.4)))
    found = calibrate([run_of(slow, 2), run_of(slow, 7)], KNOWN)
    assert found.steps.target.decode_s(1, 500) == pytest.approx(1.4 * KNOWN.steps.target.decode_s(1, 500))
    assert found.overheads.draft_step_s == pytest.approx(0.0009)


def test_calibrated_plan_repeats_the_runs() -> None:
    slow = replace(KNOWN, steps=replace(KNOWN.steps, target=ScaledStepTime(KNOWN.steps.target, 1.4)), overheads=Overheads(0.003, 0.004, ""))
    runs = [run_of(slow, 2), run_of(slow, 7)]
    found = calibrate(runs, KNOWN)
    cycle = replace(KNOWN, steps=found.steps, overheads=found.overheads)
    for run in runs:
        assert cycle.speculative_tokens_per_s(1, run.draft_tokens, ACCEPTANCE) == pytest.approx(run.tokens_per_s)


def test_workload_of_a_run_may_differ() -> None:
    other = replace(KNOWN, workload=WorkloadSpec(input_tokens=64, output_tokens=100))
    runs = [run_of(other, k).model_copy(update={"input_tokens": 64, "output_tokens": 100}) for k in (1, 5)]
    assert calibrate(runs, KNOWN).overheads.cycle_s == pytest.approx(0.0014)


def test_all_runs_count_by_least_squares() -> None:
    """A third run, 10 % slower, moves the line that two would fix."""
    runs = [run_of(KNOWN, k) for k in (2, 4, 7)]
    found = calibrate(runs, KNOWN)
    assert found.overheads.draft_step_s == pytest.approx(0.0009)
    slower = [runs[0], runs[1].model_copy(update={"tokens_per_s": runs[1].tokens_per_s * 0.9}), runs[2]]
    moved = calibrate(slower, KNOWN).overheads
    extra_s = 0.1 / 0.9 * (expected_length(ACCEPTANCE, 4) / runs[1].tokens_per_s)
    assert moved.cycle_s + 13 / 3 * moved.draft_step_s == pytest.approx(0.0014 + 13 / 3 * 0.0009 + extra_s / 3)


@pytest.mark.parametrize("plain", [True, False])
def test_cycle_shorter_than_its_verification_is_refused(plain: bool) -> None:
    fast = run_of(KNOWN, 5, plain=plain).model_copy(update={"tokens_per_s": 1e9})
    with pytest.raises(
        RefusedError, match=r"^The calibration run with 5 draft tokens at 1e\+09 tokens/s cannot have been: it leaves no time"
    ):
        calibrate([run_of(KNOWN, 1, plain=plain), fast], KNOWN)


def test_rate_without_accepted_tokens_is_that_of_a_step_at_most() -> None:
    """Nothing accepted, yet four times as fast as one token a pass allows."""
    nothing = run_of(KNOWN, 5, plain=False).model_copy(update={"tokens_per_s": 200.0, "acceptance_length": 1.0})
    with pytest.raises(RefusedError, match=r"a cycle of 1 tokens would take .* ms, and the pass that verifies takes 20.06 ms\.$") as caught:
        calibrate([run_of(KNOWN, 1, plain=False), nothing], KNOWN)
    assert caught.value.finding.code == "SPEED-MEASURED-INVALID"


def test_drafts_never_take_less_than_no_time() -> None:
    """Runs of a server whose draft costs nothing, and steps that say 8 ms: the overhead is bounded, and the plan says so."""
    free = replace(KNOWN, steps=replace(KNOWN.steps, draft=None), overheads=Overheads(-0.001, 0.0, ""))
    runs = [run_of(free, k) for k in (2, 7)]
    slow = replace(KNOWN, steps=replace(KNOWN.steps, draft=LinearStepTime(0.008)))
    found = calibrate(runs, slow)
    assert found.overheads.draft_step_s == pytest.approx(-0.008)
    cycle = replace(slow, steps=found.steps, overheads=found.overheads)
    assert all(cycle.cycle_s(1, k) >= cycle.verify_s(1, k) for k in (1, 7, 30))


def test_runs_that_leave_less_than_no_time_are_doubted() -> None:
    slow = replace(KNOWN, steps=replace(KNOWN.steps, draft=LinearStepTime(0.008)))
    assert calibrate([run_of(KNOWN, k) for k in (2, 7)], KNOWN).doubts == ()
    fast = [run_of(KNOWN, k).model_copy(update={"tokens_per_s": rate}) for k, rate in ((2, 105.0), (7, 225.0))]
    assert "less than no time" in calibrate(fast, slow).doubts[0]
