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
from builder.planner.sweep.alike import alike
from builder.planner.sweep.axes import DEFAULT_AXES, combinations, default_axes, parse_axes
from builder.planner.sweep.choose import choose, front
from builder.planner.sweep.model import RowFigures, Sweep, SweepRow, row_label
from builder.planner.sweep.settings import Axes, Setting, with_settings
from builder.planner.workload import workload_of
from builder.spec import Pair, PairSpec

KV_FIELD, MEMORY_CODES = "target.kv_cache", "MEM-"


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
    """The sweep of `--sweep FIELD=V1,V2` options. Without any, and with `all`, over KV precision, draft length and batch; fields that are
    given too take the values given. A KV precision that the lane refuses at any length and batch is then one row.

    Raises RefusedError SWEEP-AXIS-SYNTAX, SWEEP-AXIS-UNKNOWN, SWEEP-ROWS; a refused combination is a row of the result.
    """
    typed = parse_axes([text for text in axis_texts if text != DEFAULT_AXES])
    if typed and DEFAULT_AXES not in axis_texts:
        return sweep(pair, typed, evaluate, progress)
    axes = {**default_axes(pair.spec), **typed}
    outright = [] if KV_FIELD in typed else [value for value in axes[KV_FIELD] if _refused_outright(pair, value, evaluate)]
    kept = {**axes, KV_FIELD: tuple(value for value in axes[KV_FIELD] if value not in outright)}
    return sweep(pair, kept if kept[KV_FIELD] else axes, evaluate, progress, alone=outright if kept[KV_FIELD] else ())


def sweep(
    pair: Pair,
    axes: Axes,
    evaluate: Evaluate,
    progress: Progress = lambda _text, _share: None,
    alone: Sequence[Setting] = (),
) -> Sweep:
    """Plan every combination of the axes' values, and each KV precision of `alone` once. Raises RefusedError SWEEP-ROWS when there are too
    many."""
    rows: list[SweepRow] = []
    settings = [*combinations(axes), *({KV_FIELD: value} for value in alone)]
    shown = {**axes, KV_FIELD: (*axes[KV_FIELD], *alone)} if alone else axes
    for number, chosen in enumerate(settings, start=1):
        progress(f"planning ({row_label(chosen, shown)})", (number - 1) / len(settings))
        rows.append(_row(number, pair, chosen, shown, evaluate))
    recommended, sentence = choose(pair.spec, rows)
    spec = pair.spec
    return Sweep(
        spec.name,
        shown,
        workload_of(spec),
        spec.planning.price,
        tuple(rows),
        front(rows, recommended),
        recommended,
        sentence,
        tuple(alike(rows, spec.planning.goal)),
    )


def _refused_outright(pair: Pair, kv_cache: Setting, evaluate: Evaluate) -> bool:
    """Whether a rule, rather than memory, refuses this precision of the cache with the pair as it is otherwise."""
    row = _row(0, pair, {KV_FIELD: kv_cache}, {KV_FIELD: (kv_cache,)}, evaluate)
    return any(not code.startswith(MEMORY_CODES) for code in row.codes)


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
        figures=_figures(pair.spec, changed.spec, plan.memory, plan.speed, _shown_row(changed.spec, plan.speed)),
    )


def _refused(number: int, settings: Mapping[str, Setting], label: str, findings: Sequence[Finding]) -> SweepRow:
    errors = [f for f in findings if f.severity == "error"]
    assert errors, "a plan without memory or speed says why"
    codes = tuple(dict.fromkeys(f.code for f in errors))
    return SweepRow(number, settings, label, codes, _reason(errors[0]))


def _reason(finding: Finding) -> str:
    """The sentence without the file's line: what stands there is not the value that was swept."""
    _, position, sentence = finding.message.partition(f":{finding.line}: ")
    return sentence if position and finding.line else finding.message


def _shown_row(spec: PairSpec, speed: SpeedPlan) -> BatchRow:
    """The largest batch; for a stated goal the batch that meets it."""
    return goal_row(spec, speed) if goal_is_stated(spec.planning.goal) else speed.saturation


def _figures(asked: PairSpec, spec: PairSpec, memory: MemoryPlan, speed: SpeedPlan, row: BatchRow) -> RowFigures:
    chips, workload = spec.hardware.count, workload_of(spec)
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
        draft_tokens=row.draft_tokens,
    )
