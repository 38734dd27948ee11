"""Overheads of the user's own server, from two or more of its runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from builder.planner.speed.acceptance import acceptance_of
from builder.planner.speed.constants import Overheads
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.measured import ScaledStepTime
from builder.planner.speed.measured_file import CalibrationRun, refused_run
from builder.planner.speed.model import Steps
from builder.spec.model import WorkloadSpec

NO_OVERHEADS = Overheads(0.0, 0.0, "none")
SCALED_BAND = 0.25
"""Share by which a verification may be off once the plain step is known."""


@dataclass(frozen=True)
class Calibrated:
    """What the runs say: step times scaled to the runs without drafts, the two overheads, the acceptance, and what is doubtful of them."""

    steps: Steps
    overheads: Overheads
    acceptance: float
    doubts: tuple[str, ...] = ()


def calibrate(runs: Sequence[CalibrationRun], cycle: Cycle) -> Calibrated:
    """Overheads of a draft step and of a cycle by least squares over all runs; the acceptance is their mean.

    Each run's cycle takes T = (n / rate - prompt) E / n seconds, of which k od + oc are not the kernels'. Where the runs without drafts
    are known, the target's times are scaled to them first. A negative overhead means that the provider's kernels are too slow, by at most
    all that a draft step takes. Raises RefusedError SPEED-MEASURED-INVALID for a cycle shorter than the pass that it holds.
    """
    steps = _scaled(runs, cycle)
    bare = replace(cycle, steps=steps, overheads=NO_OVERHEADS)
    for run in runs:
        _check(run, _of_run(run, bare))
    draft_step_s, cycle_s = _line([(run.draft_tokens, _extra_s(run, _of_run(run, bare))) for run in runs])
    doubts = _doubts(runs, bare, draft_step_s, cycle_s)
    least_s = -min(bare.draft_s(run.batch) for run in runs)
    if draft_step_s < least_s:
        draft_step_s = least_s
        cycle_s = _mean([_extra_s(run, _of_run(run, bare)) - run.draft_tokens * draft_step_s for run in runs])
    acceptance = _mean([acceptance_of(run.acceptance_length, run.draft_tokens) or 0.0 for run in runs])
    return Calibrated(steps, Overheads(draft_step_s, cycle_s, "your calibration runs"), acceptance, doubts)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope and start of the line with the least squares to all points."""
    middle, height = _mean([x for x, _ in points]), _mean([y for _, y in points])
    slope = sum((x - middle) * (y - height) for x, y in points) / sum((x - middle) ** 2 for x, _ in points)
    return slope, height - slope * middle


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _check(run: CalibrationRun, cycle: Cycle) -> None:
    """With the runs without drafts known, kernels are known to a few percent; else to the provider's band."""
    taken_s, verify_s = _cycle_s(run, cycle), cycle.verify_s(run.batch, run.draft_tokens)
    share = 1 - (SCALED_BAND if run.plain_tokens_per_s else 2 * cycle.steps.target.error_band)
    if taken_s < share * verify_s:
        length = f"{run.acceptance_length:g} tokens"
        what = f"a cycle of {length} would take {taken_s * 1e3:.2f} ms" if taken_s > 0 else "it leaves no time at all beside the prompts"
        raise refused_run(run, f"{what}, and the pass that verifies takes {verify_s * 1e3:.2f} ms")


def _doubts(runs: Sequence[CalibrationRun], cycle: Cycle, draft_step_s: float, cycle_s: float) -> tuple[str, ...]:
    """Sentences without an end."""
    longest = max(run.draft_tokens for run in runs)
    batch = min(run.batch for run in runs)
    if longest * (cycle.draft_s(batch) + draft_step_s) + cycle_s >= 0:
        return ()
    return (f"by them {longest} drafts would take less than no time, so step times are too slow for these chips, or the runs mistaken",)


def _scaled(runs: Sequence[CalibrationRun], cycle: Cycle) -> Steps:
    factors = [_of_run(r, cycle).plain_tokens_per_s(r.batch) / r.plain_tokens_per_s for r in runs if r.plain_tokens_per_s]
    return replace(cycle.steps, target=ScaledStepTime(cycle.steps.target, _mean(factors))) if factors else cycle.steps


def _of_run(run: CalibrationRun, cycle: Cycle) -> Cycle:
    workload = WorkloadSpec(
        input_tokens=run.input_tokens or cycle.workload.input_tokens, output_tokens=run.output_tokens or cycle.workload.output_tokens
    )
    return replace(cycle, workload=workload)


def _cycle_s(run: CalibrationRun, cycle: Cycle) -> float:
    """Seconds of a measured cycle."""
    answer, batch = cycle.workload.output_tokens, run.batch
    decoding_s = batch * answer / run.tokens_per_s - batch * cycle.prompt_s(batch, run.draft_tokens, drafts=True)
    return decoding_s * run.acceptance_length / answer


def _extra_s(run: CalibrationRun, cycle: Cycle) -> float:
    """Seconds of a measured cycle beyond its kernels."""
    return _cycle_s(run, cycle) - cycle.kernels_s(run.batch, run.draft_tokens)
