"""Overheads found from two runs."""

from dataclasses import replace

import pytest

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
