"""The speed plan of a pair."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from builder.planner.speed.aiconfigurator import CannotAnswerError
from builder.planner.speed.anchors import Anchor, Kind, nearest_anchor
from builder.planner.speed.batches import Drafting, powers_of_two
from builder.planner.speed.calibration import calibrate
from builder.planner.speed.constants import constants, overheads_of, speedup_error_band
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.measured_file import MeasuredFile, read_measured
from builder.planner.speed.model import BatchRow, ModelOnChips, SpeedPlan, Steps
from builder.planner.speed.providers import Chosen, chosen_steps
from builder.planner.speed.roofline import RooflineStepTime
from builder.spec import PairSpec

ASSUMED_ACCEPTANCE = 0.7
LONGEST_DRAFT = 16
WORTH_SAYING = 1.03
"""A longer draft is worth a word when it is faster by this factor."""


def plan_speed(
    spec: PairSpec, target: ModelOnChips, draft: ModelOnChips | None, *, pool_tokens: int, measured: Path | None = None
) -> SpeedPlan:
    """Rates at each batch that the limits and the pool of `pool_tokens` allow, the best draft lengths, and where drafting stops paying.

    Raises RefusedError SPEED-MEASURED-MISSING, SPEED-MEASURED-INVALID or SPEED-AICONFIGURATOR.
    """
    file = read_measured(measured) if measured else None
    try:
        return _plan(spec, target, draft, file, pool_tokens, None)
    except CannotAnswerError as error:
        plan = _plan(spec, target, draft, file, pool_tokens, "roofline")
        return replace(plan, notes={**plan.notes, "target": str(error)})


def _plan(
    spec: PairSpec, target: ModelOnChips, draft: ModelOnChips | None, file: MeasuredFile | None, pool_tokens: int, wanted: str | None
) -> SpeedPlan:
    with chosen_steps(spec, target, draft, file, wanted=wanted) as chosen:
        drafting, calibrated, source = _drafting(spec, chosen, file)
        sequences = max(1, pool_tokens // _sequence_tokens(spec, drafting.choices))
        largest = max(1, min(spec.limits.max_batch_size, spec.serve.max_concurrent_requests, sequences))
        rows = tuple(_with_anchor(drafting.row(batch), "speculative", target) for batch in powers_of_two(largest))
        saturation = _with_anchor(drafting.row(largest), "throughput", target)
        steps = drafting.cycle.steps
        band = max(s.error_band for s in (steps.target, steps.draft) if s)
        return SpeedPlan(
            provider=steps.target.provider,
            error_band=band,
            speedup_error_band=speedup_error_band(band, calibrated=calibrated),
            acceptance=drafting.acceptance,
            acceptance_source=source,
            overheads=drafting.cycle.overheads,
            rows=rows,
            saturation=saturation,
            stop_batch=drafting.stop_batch() if drafting.choices else None,
            anchors=_anchors(target, rows, saturation),
            pool_sequences=sequences,
            longer_draft=_longer_draft(spec, drafting, rows[0]),
            disagreement=_disagreement(target, drafting.cycle, largest),
            unverified=_unverified(steps, target),
            notes=chosen.notes,
            row_at=cache(lambda batch: _row_at(batch, drafting, chosen, target)),
        )


def _row_at(batch: int, drafting: Drafting, chosen: Chosen, target: ModelOnChips) -> BatchRow:
    """Prediction at a batch that is asked for once the plan stands."""
    row = _with_anchor(drafting.row(batch), "speculative", target)
    chosen.save()
    return row


def _drafting(spec: PairSpec, chosen: Chosen, file: MeasuredFile | None) -> tuple[Drafting, bool, str]:
    """How drafts are made, whether overheads are calibrated, and where the acceptance comes from."""
    lookup_only = spec.draft.method == "ngram"
    cycle = Cycle(
        chosen.steps, overheads_of(spec.engine.kind, lookup_only=lookup_only), spec.planning.workload, spec.limits.max_batched_tokens
    )
    if spec.draft.method == "none" or (spec.has_draft_model and chosen.steps.draft is None):
        return Drafting(cycle, 0.0, ()), False, "nothing is drafted"
    longest = spec.speculation.max_draft_tokens
    choices = range(1, longest + 1) if spec.speculation.adaptive else (longest,)
    acceptance, source = spec.planning.acceptance, "planning.acceptance"
    runs = file.calibration if file else ()
    if runs:
        calibrated = calibrate(runs, cycle)
        cycle = replace(cycle, steps=calibrated.steps, overheads=calibrated.overheads)
        if acceptance is None:
            acceptance, source = calibrated.acceptance, "planning.measured"
    if acceptance is None:
        acceptance, source = ASSUMED_ACCEPTANCE, "assumed"
    return Drafting(cycle, acceptance, choices), bool(runs), source


def _sequence_tokens(spec: PairSpec, choices: Sequence[int]) -> int:
    """Tokens of the pool that one request holds at its end, in whole blocks."""
    workload, block = spec.planning.workload, spec.kv_cache.tokens_per_block
    tokens = workload.input_tokens + workload.output_tokens + max(choices, default=0) + 1
    return -(-tokens // block) * block


def _anchor(row: BatchRow, kind: Kind, target: ModelOnChips) -> Anchor:
    chips = target.tensor_parallel * target.pipeline_parallel
    return nearest_anchor(kind, target.facts.shape.parameters, target.chip.name, chips, target.weights, row.batch)


def _with_anchor(row: BatchRow, kind: Kind, target: ModelOnChips) -> BatchRow:
    return replace(row, anchor=_anchor(row, kind, target).name)


def _anchors(target: ModelOnChips, rows: Sequence[BatchRow], saturation: BatchRow) -> tuple[Anchor, ...]:
    found = [_anchor(row, "speculative", target) for row in rows] + [_anchor(saturation, "throughput", target)]
    return tuple({anchor.name: anchor for anchor in found}.values())


def _longer_draft(spec: PairSpec, drafting: Drafting, first: BatchRow) -> tuple[int, float] | None:
    if not drafting.choices:
        return None
    best = drafting.cycle.best_draft_tokens(1, drafting.acceptance, range(1, LONGEST_DRAFT + 1))
    speedup = drafting.cycle.speedup(1, best, drafting.acceptance)
    return (best, speedup) if best > spec.speculation.max_draft_tokens and speedup > first.speedup * WORTH_SAYING else None


def _disagreement(target: ModelOnChips, cycle: Cycle, batch: int) -> float | None:
    """The larger over the smaller of the target's step time and the roofline's, at the worse of both ends."""
    if cycle.steps.target.provider != "aiconfigurator":
        return None
    roofline = Cycle(Steps(RooflineStepTime(target), None), cycle.overheads, cycle.workload)
    ratios = [cycle.target_s(b) / roofline.target_s(b) for b in (1, batch)]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _unverified(steps: Steps, target: ModelOnChips) -> tuple[str, ...]:
    """Reasons why these figures could not be checked."""
    known = {"provider": steps.target.provider, "chip": target.chip.name, "weights": target.weights}
    return tuple(
        rule["reason"]
        for rule in constants()["unverified"]
        if all(rule.get(name, value) == value for name, value in known.items())
        and target.tensor_parallel >= rule.get("min_tensor_parallel", 1)
    )
