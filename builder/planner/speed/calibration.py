"""Overheads of the user's own server, from two of its runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.planner.speed.acceptance import acceptance_of
from builder.planner.speed.constants import Overheads
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.measured import ScaledStepTime
from builder.planner.speed.measured_file import CalibrationRun
from builder.planner.speed.model import Steps
from builder.spec.model import WorkloadSpec

NO_OVERHEADS = Overheads(0.0, 0.0, "none")


@dataclass(frozen=True)
class Calibrated:
    """What the runs say: step times scaled to the plain run, the two overheads, and the acceptance at the shortest draft."""

    steps: Steps
    overheads: Overheads
    acceptance: float


def calibrate(runs: Sequence[CalibrationRun], cycle: Cycle) -> Calibrated:
    """Solve for the overheads of a draft step and of a cycle with the runs of the shortest and the longest draft.

    Each run's cycle takes T = (n / rate - prompt) E / n seconds, of which k od + oc are not the kernels'. Where the runs without drafts
    are known, the target's times are scaled to them first. A negative overhead means that the provider's draft is too slow.
    """
    short, long = min(runs, key=lambda run: run.draft_tokens), max(runs, key=lambda run: run.draft_tokens)
    steps = _scaled(short, cycle)
    extras = [_extra_s(run, _of_run(run, replace(cycle, steps=steps, overheads=NO_OVERHEADS))) for run in (short, long)]
    draft_step_s = (extras[1] - extras[0]) / (long.draft_tokens - short.draft_tokens)
    overheads = Overheads(draft_step_s, extras[0] - short.draft_tokens * draft_step_s, "your calibration runs")
    acceptance = acceptance_of(short.acceptance_length, short.draft_tokens)
    assert acceptance is not None
    return Calibrated(steps, overheads, acceptance)


def _scaled(run: CalibrationRun, cycle: Cycle) -> Steps:
    if run.plain_tokens_per_s is None:
        return cycle.steps
    factor = _of_run(run, cycle).plain_tokens_per_s(run.batch) / run.plain_tokens_per_s
    return replace(cycle.steps, target=ScaledStepTime(cycle.steps.target, factor))


def _of_run(run: CalibrationRun, cycle: Cycle) -> Cycle:
    workload = WorkloadSpec(
        input_tokens=run.input_tokens or cycle.workload.input_tokens, output_tokens=run.output_tokens or cycle.workload.output_tokens
    )
    return replace(cycle, workload=workload)


def _extra_s(run: CalibrationRun, cycle: Cycle) -> float:
    """Seconds of a measured cycle beyond its kernels."""
    answer, batch = cycle.workload.output_tokens, run.batch
    decoding_s = batch * answer / run.tokens_per_s - batch * cycle.prompt_s(batch, drafts=True)
    return decoding_s * run.acceptance_length / answer - cycle.cycle_s(batch, run.draft_tokens)
