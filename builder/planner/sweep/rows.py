"""Planning every combination of settings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from builder.api import Progress
from builder.errors import Finding, RefusedError
from builder.planner.cost.goal import goal_is_stated, goal_row, served_tokens_per_s
from builder.planner.cost.model import cost_per_million
from builder.planner.memory import MemoryPlan
from builder.planner.memory.needs import sequence_tokens
from builder.planner.speed import BatchRow, SpeedPlan
from builder.planner.sweep.choose import choose, front
from builder.planner.sweep.model import RowFigures, Sweep, SweepRow, row_label
from builder.planner.sweep.settings import Axes, Setting, combinations, default_axes, parse_axes, with_settings
from builder.spec import Pair, PairSpec


class PlanLike(Protocol):
    """What a sweep looks at of a plan."""

    @property
    def ok(self) -> bool: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def memory(self) -> MemoryPlan | None: ...
    @property
    def speed(self) -> SpeedPlan | None: ...


Evaluate = Callable[[Pair], PlanLike]


def run_sweep(pair: Pair, axis_texts: Sequence[str], evaluate: Evaluate, progress: Progress = lambda _text, _share: None) -> Sweep:
    """The sweep of `--sweep FIELD=V1,V2` options; without any, over KV precision, draft length and batch.

    Raises RefusedError SWEEP-AXIS-SYNTAX, SWEEP-AXIS-UNKNOWN, SWEEP-ROWS; a refused combination is a row of the result.
    """
    return sweep(pair, parse_axes(axis_texts) or default_axes(pair.spec), evaluate, progress)


def sweep(pair: Pair, axes: Axes, evaluate: Evaluate, progress: Progress = lambda _text, _share: None) -> Sweep:
    """Plan every combination of the axes' values. Raises RefusedError SWEEP-ROWS when there are too many."""
    rows: list[SweepRow] = []
    settings = combinations(axes)
    for number, chosen in enumerate(settings, start=1):
        progress(f"planning ({row_label(chosen, axes)})", (number - 1) / len(settings))
        rows.append(_row(number, pair, chosen, axes, evaluate))
    recommended, sentence = choose(pair.spec, rows)
    spec = pair.spec
    return Sweep(spec.name, axes, spec.planning.workload, spec.planning.price, tuple(rows), front(rows, recommended), recommended, sentence)


def _row(number: int, pair: Pair, settings: Mapping[str, Setting], axes: Axes, evaluate: Evaluate) -> SweepRow:
    label = row_label(settings, axes)
    try:
        changed = with_settings(pair, settings)
        plan = evaluate(changed)
    except RefusedError as error:
        return _refused(number, settings, label, error.findings)
    if not plan.ok or plan.memory is None or plan.speed is None:
        return _refused(number, settings, label, plan.findings)
    return SweepRow(
        number,
        settings,
        label,
        figures=_figures(pair.spec, changed.spec, plan.memory, plan.speed, _shown_row(changed.spec, axes, plan.speed)),
    )


def _refused(number: int, settings: Mapping[str, Setting], label: str, findings: Sequence[Finding]) -> SweepRow:
    errors = [f for f in findings if f.severity == "error"]
    assert errors, "a plan without memory or speed says why"
    codes = tuple(dict.fromkeys(f.code for f in errors))
    return SweepRow(number, settings, label, codes, _reason(errors[0]))


def _reason(finding: Finding) -> str:
    """The sentence without the file's line: what stands there is not the value that was swept."""
    return finding.message.removeprefix(f"{finding.file}:{finding.line}: ")


def _shown_row(spec: PairSpec, axes: Axes, speed: SpeedPlan) -> BatchRow:
    """The largest batch; for a stated goal the batch that meets it, unless batches are what is compared."""
    goal_decides = goal_is_stated(spec.planning.goal) and "limits.max_batch_size" not in axes
    return goal_row(spec, speed) if goal_decides else speed.saturation


def _figures(asked: PairSpec, spec: PairSpec, memory: MemoryPlan, speed: SpeedPlan, row: BatchRow) -> RowFigures:
    chips, workload = spec.hardware.count, spec.planning.workload
    served = served_tokens_per_s(spec, row)
    price = spec.planning.price if spec.hardware.chip == asked.hardware.chip else None
    return RowFigures(
        capacity_tokens=memory.pool_tokens,
        sequences=memory.pool_tokens // sequence_tokens(spec, workload.input_tokens + workload.output_tokens),
        batch=row.batch,
        tokens_per_s=served,
        speedup=served / row.plain_tokens_per_s,
        chip_count=chips,
        per_million=cost_per_million(served, price.per_chip_hour, chips) if price else None,
        provider=speed.provider,
        error_band=speed.error_band,
    )
