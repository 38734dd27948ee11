"""A plan for people: the answer in a few lines, then stages, memory, speed and cost, then what was found, the worst last."""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from builder.cli.columns import show_columns
from builder.cli.sweep import show_cost
from builder.pipeline.session import Session
from builder.planner.cost import HardwareAdvice
from builder.planner.memory import EngineShare, MemoryPlan
from builder.planner.speed import Anchor, BatchRow, SpeedPlan

if TYPE_CHECKING:
    from builder.planner import Plan

GIB = 2**30
WORST_LAST = ("info", "warning", "error")


def show_plan(session: Session, advice: HardwareAdvice | None, *, settings: bool) -> None:
    """Everything that the plan decided and predicts; of a refused pair the memory alone, which may be why."""
    plan = session.plan
    _show_summary(plan)
    if settings:
        _show_settings(plan)
    if plan.memory is not None:
        _show_memory(plan.memory)
    if not plan.ok:
        return
    if plan.speed is not None:
        _show_speed(plan.speed)
    if plan.cost is not None:
        show_cost(plan.cost, advice)
    _show_stages(session)


def count_findings(plan: "Plan") -> str:
    """How many of each kind, the worst first."""
    counts = Counter(str(finding.severity) for finding in plan.findings)
    words = (("error", "error"), ("warning", "warning"), ("info", "note"))
    parts = [f"{counts[kind]} {word}{'s' if counts[kind] != 1 else ''}" for kind, word in words if counts[kind]]
    return ", ".join(parts) or "nothing to say"


def _show_summary(plan: "Plan") -> None:
    verdict = click.style("accepted", fg="green", bold=True) if plan.ok else click.style("refused", fg="red", bold=True)
    click.echo(f"{plan.pair.spec.name}: {verdict}: {count_findings(plan)}")
    if plan.ok:
        for line in _summary_lines(plan):
            click.echo(f"  {line}")
    click.echo()


def _summary_lines(plan: "Plan") -> list[str]:
    lines = []
    if (memory := plan.memory) is not None:
        fits = memory.capacity[-1]
        place = f"{memory.chip_count} x {memory.chip}" if memory.device_bytes else "host memory"
        lines.append(f"memory: {fits.sequences} sequences of {fits.context_tokens:,} tokens fit at once on {place}")
    if (speed := plan.speed) is not None:
        first, last = speed.rows[0], speed.saturation
        rates = (f"{_rates(row)} at batch {row.batch}" for row in ((first,) if first.batch == last.batch else (first, last)))
        lines.append(f"speed: {', '.join(rates)}")
        source = f"predicted by {speed.provider}, rates within {speed.error_band:.0%}"
        lines.append(f"       {source}, for an acceptance of {speed.acceptance:.2f} ({speed.acceptance_source})")
    return lines


def _rates(row: BatchRow) -> str:
    if not row.draft_tokens:
        return f"{row.plain_tokens_per_s:,.0f} tokens/s"
    return f"{row.plain_tokens_per_s:,.0f} -> {row.speculative_tokens_per_s:,.0f} tokens/s ({row.speedup:.2f}x)"


def _show_stages(session: Session) -> None:
    rows = []
    for stage in session.plan.stages:
        reuse = session.workspace.reuse(stage, verify=False)
        rows.append((stage.name, "reused" if reuse.hit else "runs", reuse.reason))
    rows += [(name, "runs", "always measured anew") for name in ("validate", "report")]
    show_columns("stages", ("stage", "what happens", "why"), rows, left=3)


def _show_memory(memory: MemoryPlan) -> None:
    place = f"each of {memory.chip_count} x {memory.chip}" if memory.device_bytes else "host"
    rows = [(name, *(cell(share) for share in memory.engines)) for name, cell in MEMORY_ROWS.items()]
    show_columns(f"memory of {place}", ("", *(share.role for share in memory.engines)), rows)
    for line in _memory_lines(memory):
        click.echo(f"  {line}")
    click.echo()


def _devices(share: EngineShare) -> str:
    first, last = share.devices[0], share.devices[-1]
    return f"{first}" if first == last else f"{first} to {last}"


MEMORY_ROWS: dict[str, Callable[[EngineShare], str]] = {
    "devices": _devices,
    "weights": lambda share: size(share.weights_bytes),
    "activations": lambda share: size(share.activation_bytes),
    "other": lambda share: size(share.other_bytes),
    "KV cache": lambda share: share.kv_cache,
    "KV bytes a token": lambda share: f"{share.kv_bytes_per_token:,}",
    "KV pool tokens": lambda share: f"{share.pool_tokens:,}",
    "KV pool": lambda share: size(share.pool_bytes),
    "together": lambda share: size(share.total_bytes),
}


def _memory_lines(memory: MemoryPlan) -> list[str]:
    lines = []
    if memory.device_bytes:
        used, reserve = size(memory.total_bytes), size(memory.reserve_bytes)
        idle = f"; {size(memory.idle_bytes)} unused on the other devices" if memory.idle_bytes else ""
        lines.append(f"device 0: {used} of {size(memory.device_bytes)}, {reserve} in reserve{idle}")
        lines.append(f"tokens that can be live at once by the limits: {memory.needed_tokens:,}; the rest of a pool is cache for reuse")
        orders = [", then ".join(f"{step.role} {step.fraction:.3f}" for step in order) for order in memory.load_orders]
        lines.append("the same pools as fractions of what is free at load:")
        lines += [f"  {order}" for order in orders]
    fits = ", ".join(f"{row.sequences} x {row.context_tokens:,}" for row in memory.capacity)
    lines.append(f"sequences that fit at once, by length in tokens: {fits}")
    build = [f"{size(memory.build.host_memory_bytes)} of memory", f"{size(memory.build.disk_bytes)} of disk"]
    if memory.build.device_memory_bytes:
        build.append(f"{size(memory.build.device_memory_bytes)} of device memory")
    lines.append(f"a build takes {', '.join(build)}; the server {size(memory.shared_memory_bytes)} of shared memory")
    return lines


def _show_speed(speed: SpeedPlan) -> None:
    title = f"speed, predicted by {speed.provider}: rates within {speed.error_band:.0%}, ratios within {speed.speedup_error_band:.0%}"
    head = ("batch", "target ms", "verify ms", "draft ms", "tok/s", "drafted", "gain", "k", "wins above")
    show_columns(title, head, [_speed_cells(row) for row in _speed_rows(speed)], left=0)
    for line in _speed_lines(speed):
        click.echo(f"  {line}")
    click.echo()


def _speed_rows(speed: SpeedPlan) -> tuple[BatchRow, ...]:
    known = any(row.batch == speed.saturation.batch for row in speed.rows)
    return speed.rows if known else (*speed.rows, speed.saturation)


def _speed_cells(row: BatchRow) -> tuple[str, ...]:
    times = (f"{seconds * 1e3:.2f}" for seconds in (row.target_step_s, row.verify_s, row.draft_step_s))
    rates = (f"{rate:,.0f}" for rate in (row.plain_tokens_per_s, row.speculative_tokens_per_s))
    above = "never" if row.break_even_acceptance is None else f"{row.break_even_acceptance:.2f}"
    return (str(row.batch), *times, *rates, f"{row.speedup:.2f}x", str(row.draft_tokens), above)


def _speed_lines(speed: SpeedPlan) -> list[str]:
    lines = ["k: draft tokens a round; wins above: the acceptance from which drafting is faster"]
    if speed.stop_batch is not None:
        lines.append(f"drafting wins up to batch {speed.stop_batch}" if speed.stop_batch else "drafting wins at no batch")
    lines += [f"not verified: {reason}" for reason in speed.unverified]
    lines += [f"nearest published: {_anchor(anchor, speed.acceptance)}" for anchor in speed.anchors]
    return lines


def _anchor(anchor: Anchor, acceptance: float) -> str:
    plain, fast = anchor.plain_tokens_per_s, anchor.tokens_per_s
    rates = " -> ".join(f"{rate:,.5g}" for rate in (plain, fast) if rate is not None)
    speedup = f"{anchor.speedup:.2f}x" if anchor.speedup else ""
    figures = ", ".join(part for part in (rates and f"{rates} tok/s", speedup, anchor.unlike(acceptance)) if part)
    return f"{anchor.name}: {figures} ({anchor.runtime})"


def _show_settings(plan: "Plan") -> None:
    rows = []
    for field, value in _flat(plan.pair.spec.model_dump(mode="json")):
        given = tuple(field.split(".")) in plan.pair.lines.of
        rows.append((field, "pair file" if given else "default", "" if value is None else str(value)))
    show_columns("settings", ("field", "from", "value"), rows, left=3)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in settings.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) and value else [(f"{prefix}{name}", value)]
    return rows


def size(count_bytes: int) -> str:
    """Bytes in GiB, or in MiB below one."""
    return f"{count_bytes / GIB:.1f} GiB" if abs(count_bytes) >= GIB else f"{count_bytes / 2**20:.0f} MiB"
