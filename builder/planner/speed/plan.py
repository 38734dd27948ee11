"""The speed plan of a pair."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from builder.planner.speed.aiconfigurator import CannotAnswerError
from builder.planner.speed.anchors import Anchor, Kind, nearest_anchor
from builder.planner.speed.batches import Drafting, powers_of_two
from builder.planner.speed.calibration import calibrate
from builder.planner.speed.constants import assumed_acceptance, overheads_of, speedup_error_band
from builder.planner.speed.cycle import Cycle
from builder.planner.speed.measured_file import MeasuredFile, read_measured
from builder.planner.speed.model import BatchRow, ModelOnChips, SpeedPlan
from builder.planner.speed.providers import Chosen, chosen_steps
from builder.planner.speed.trust import published_acceptance, second_opinion, unverified, widened_band
from builder.planner.workload import workload_of
from builder.spec import PairSpec

WORTH_SAYING = 1.03
"""Another draft length is worth a word when it is faster by this factor."""


def plan_speed(
    spec: PairSpec,
    target: ModelOnChips,
    draft: ModelOnChips | None,
    *,
    pool_tokens: int,
    measured: Path | None = None,
    lane_adapts: bool = True,
) -> SpeedPlan:
    """Rates at each batch that the limits and the pool of `pool_tokens` allow, the best draft lengths, and where drafting stops paying.

    Where the lane does not adapt the draft length, it is the limit's, whatever speculation.adaptive says. Raises RefusedError
    SPEED-MEASURED-MISSING, SPEED-MEASURED-INVALID or SPEED-AICONFIGURATOR.
    """
    file = read_measured(measured) if measured else None
    try:
        return _plan(spec, target, draft, file, pool_tokens, None, lane_adapts=lane_adapts)
    except CannotAnswerError as error:
        plan = _plan(spec, target, draft, file, pool_tokens, "roofline", lane_adapts=lane_adapts)
        return replace(plan, notes={**plan.notes, "target": str(error)})


def _plan(
    spec: PairSpec,
    target: ModelOnChips,
    draft: ModelOnChips | None,
    file: MeasuredFile | None,
    pool_tokens: int,
    wanted: str | None,
    *,
    lane_adapts: bool,
) -> SpeedPlan:
    with chosen_steps(spec, target, draft, file, wanted=wanted) as chosen:
        drafting = _drafting(spec, chosen, file, lane_adapts=lane_adapts)
        sequences = max(1, pool_tokens // _sequence_tokens(spec, drafting.choices))
        largest, batch_limit = _largest_batch(spec, sequences)
        rows = tuple(_with_anchor(drafting.row(batch), "speculative", target, spec) for batch in powers_of_two(largest))
        saturation = _with_anchor(drafting.row(largest), "throughput", target, spec)
        steps = drafting.cycle.steps
        provider = steps.target.provider
        disagreement, other_step_s = second_opinion(target, drafting.cycle, largest)
        band = widened_band(max(s.error_band for s in (steps.target, steps.draft) if s), provider, target, disagreement)
        longer, shorter = _other_lengths(spec, drafting, rows)
        return SpeedPlan(
            provider=provider,
            error_band=band,
            speedup_error_band=speedup_error_band(band, calibrated=drafting.calibrated),
            acceptance=drafting.acceptance,
            acceptance_source=drafting.source,
            overheads=drafting.cycle.overheads,
            rows=rows,
            saturation=saturation,
            stop_batch=drafting.stop_batch() if drafting.choices else None,
            anchors=_anchors(target, spec, rows, saturation),
            pool_sequences=sequences,
            longer_draft=longer,
            shorter_draft=shorter,
            disagreement=disagreement,
            other_step_s=other_step_s,
            workload=drafting.cycle.workload,
            batch_limit=batch_limit,
            adaptive=drafting.adaptive,
            lane_adapts=lane_adapts,
            published_acceptance=published_acceptance(target, draft),
            doubts=drafting.doubts,
            unverified=unverified(provider, target),
            notes=chosen.notes,
            row_at=cache(lambda batch: _row_at(batch, drafting, chosen, target, spec)),
        )


def _row_at(batch: int, drafting: Drafting, chosen: Chosen, target: ModelOnChips, spec: PairSpec) -> BatchRow | None:
    """Prediction at a batch that is asked for once the plan stands; None where the provider has no figures for it."""
    try:
        row = _with_anchor(drafting.row(batch), "speculative", target, spec)
    except CannotAnswerError:
        return None
    chosen.save()
    return row


def _largest_batch(spec: PairSpec, sequences: int) -> tuple[int, str]:
    """The largest batch and the field that limits it, "" for the pool. Requests wait in the orchestrator alone."""
    limits = [(sequences, ""), (spec.limits.max_batch_size, "limits.max_batch_size")]
    if spec.serve.topology == "orchestrated":
        limits.append((spec.serve.max_concurrent_requests, "serve.max_concurrent_requests"))
    return min(limits, key=lambda limit: limit[0])


def _drafting(spec: PairSpec, chosen: Chosen, file: MeasuredFile | None, *, lane_adapts: bool) -> Drafting:
    """How drafts are made, and where their acceptance and overheads come from."""
    overheads = overheads_of(spec.engine.kind, lookup_only=spec.draft.method == "ngram")
    cycle = Cycle(chosen.steps, overheads, workload_of(spec), spec.limits.max_batched_tokens)
    if spec.draft.method == "none" or (spec.has_draft_model and chosen.steps.draft is None):
        return Drafting(cycle, 0.0, (), adaptive=False, source="nothing is drafted")
    longest = spec.speculation.max_draft_tokens
    adaptive = spec.speculation.adaptive and lane_adapts
    choices: Sequence[int] = range(1, longest + 1) if adaptive else (longest,)
    acceptance, source = spec.planning.acceptance, "planning.acceptance"
    doubts: tuple[str, ...] = ()
    runs = file.calibration if file else ()
    if runs:
        calibrated = calibrate(runs, cycle)
        cycle, doubts = replace(cycle, steps=calibrated.steps, overheads=calibrated.overheads), calibrated.doubts
        if acceptance is None:
            acceptance, source = calibrated.acceptance, "planning.measured"
    if acceptance is None:
        acceptance, source = assumed_acceptance(spec.draft.method)[0], "assumed"
    return Drafting(cycle, acceptance, choices, adaptive, source, bool(runs), doubts)


def _sequence_tokens(spec: PairSpec, choices: Sequence[int]) -> int:
    """Tokens of the pool that one request holds at its end, in whole blocks."""
    workload, block = workload_of(spec), spec.kv_cache.tokens_per_block
    tokens = workload.input_tokens + workload.output_tokens + max(choices, default=0) + 1
    return -(-tokens // block) * block


def _anchor(row: BatchRow, kind: Kind, target: ModelOnChips, spec: PairSpec) -> Anchor:
    chips, size = target.tensor_parallel * target.pipeline_parallel, target.facts.shape.parameters
    return nearest_anchor(kind, size, target.chip.name, chips, target.weights, row.batch, spec.draft.method)


def _with_anchor(row: BatchRow, kind: Kind, target: ModelOnChips, spec: PairSpec) -> BatchRow:
    return replace(row, anchor=_anchor(row, kind, target, spec).name)


def _anchors(target: ModelOnChips, spec: PairSpec, rows: Sequence[BatchRow], saturation: BatchRow) -> tuple[Anchor, ...]:
    found = [_anchor(row, "speculative", target, spec) for row in rows] + [_anchor(saturation, "throughput", target, spec)]
    return tuple({anchor.name: anchor for anchor in found}.values())


def _other_lengths(
    spec: PairSpec, drafting: Drafting, rows: Sequence[BatchRow]
) -> tuple[tuple[int, float] | None, tuple[int, float] | None]:
    """A longer draft than the limit, and a shorter one, that is better at batch 1; a choice that no batch takes is too long too."""
    if not drafting.choices:
        return None, None
    limit, (best, speedup) = spec.speculation.max_draft_tokens, drafting.best_of_all()
    gains = speedup > rows[0].speedup * WORTH_SAYING
    longer = (best, speedup) if best > limit and gains else None
    used = max(row.draft_tokens for row in rows)
    if drafting.adaptive and used < limit:
        at_limit = drafting.cycle.speedup(1, limit, drafting.acceptance)
        return longer, (used, rows[0].speedup) if rows[0].speedup > at_limit * WORTH_SAYING else None
    return longer, (best, speedup) if not drafting.adaptive and best < limit and gains else None
