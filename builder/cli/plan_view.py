"""A plan as tables for people: stages, memory, speed, cost, settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from builder.cli.console import show_table
from builder.cli.sweep import show_cost
from builder.pipeline.session import Session
from builder.planner.cost import HardwareAdvice
from builder.planner.memory import EngineShare, MemoryPlan
from builder.planner.speed import Anchor, BatchRow, SpeedPlan

if TYPE_CHECKING:
    from builder.planner import Plan

GIB = 2**30


def show_plan(session: Session, advice: HardwareAdvice | None) -> None:
    """Everything that the plan decided and predicts, of a refused one what could be worked out; what it found comes last."""
    plan = session.plan
    _show_settings(plan)
    if plan.memory is not None:
        _show_memory(plan.memory)
    if plan.speed is not None:
        _show_speed(plan.speed)
    if plan.cost is not None:
        show_cost(plan.cost, advice)
    if plan.ok:
        _show_stages(session)


def _show_stages(session: Session) -> None:
    from rich.table import Table

    table = Table("stage", "what happens", "why", title=f"{session.plan.pair.spec.name}: stages", title_justify="left")
    for stage in session.plan.stages:
        reuse = session.workspace.reuse(stage, verify=False)
        table.add_row(stage.name, "reused" if reuse.hit else "runs", reuse.reason)
    for name in ("validate", "report"):
        table.add_row(name, "runs", "always measured anew")
    show_table(table)


def _show_memory(memory: MemoryPlan) -> None:
    from rich.table import Table

    place = f"each of {memory.chip_count} x {memory.chip}" if memory.device_bytes else "host"
    table = Table("", *(share.role for share in memory.engines), title=f"memory of {place}", title_justify="left")
    for name, cell in MEMORY_ROWS.items():
        table.add_row(name, *(cell(share) for share in memory.engines))
    show_table(table)
    for line in _memory_lines(memory):
        click.echo(line)
    click.echo()


def _devices(share: EngineShare) -> str:
    first, last = share.devices[0], share.devices[-1]
    return f"{first}" if first == last else f"{first} to {last}"


MEMORY_ROWS: dict[str, Callable[[EngineShare], str]] = {
    "devices": _devices,
    "weights": lambda share: size(share.weights_bytes),
    "activations": lambda share: size(share.activation_bytes),
    "other": lambda share: size(share.other_bytes),
    "KV cache": lambda share: f"{share.kv_cache}, {share.kv_bytes_per_token:,} bytes a token",
    "KV pool": lambda share: f"{share.pool_tokens:,} tokens, {size(share.pool_bytes)}",
    "together": lambda share: size(share.total_bytes),
}


def _memory_lines(memory: MemoryPlan) -> list[str]:
    lines = []
    if memory.device_bytes:
        used, reserve = size(memory.total_bytes), size(memory.reserve_bytes)
        lines.append(f"device 0: {used} of {size(memory.device_bytes)}, {reserve} in reserve, {size(memory.stranded_bytes)} in no pool")
        orders = (", then ".join(f"{step.role} {step.fraction:.3f}" for step in order) for order in memory.load_orders)
        lines.append(f"as fractions of what is free at load, by order of loading: {'; or '.join(orders)}; as token caps: the pools above")
    fits = ", ".join(f"{row.sequences} x {row.context_tokens:,}" for row in memory.capacity)
    lines.append(f"sequences that fit at once, by length in tokens: {fits}")
    build = [f"{size(memory.build.host_memory_bytes)} of memory", f"{size(memory.build.disk_bytes)} of disk"]
    if memory.build.device_memory_bytes:
        build.append(f"{size(memory.build.device_memory_bytes)} of device memory")
    lines.append(f"a build takes {', '.join(build)}; the server {size(memory.shared_memory_bytes)} of shared memory")
    return lines


def _show_speed(speed: SpeedPlan) -> None:
    from rich.table import Table

    title = f"speed: a prediction from {speed.provider}, rates within {speed.error_band:.0%}, ratios within {speed.speedup_error_band:.0%}"
    head = ("batch", "target ms", "verify ms", "draft ms", "tok/s", "with drafts", "speed-up", "k", "wins above")
    table = Table(*head, title=title, title_justify="left")
    for row in _speed_rows(speed):
        table.add_row(*_speed_cells(row))
    show_table(table)
    for line in _speed_lines(speed):
        click.echo(line)
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
    lines = [f"acceptance {speed.acceptance:.2f} ({speed.acceptance_source})"]
    if speed.stop_batch is not None:
        lines.append(f"drafting wins up to batch {speed.stop_batch}" if speed.stop_batch else "drafting wins at no batch")
    lines += [f"not verified: {reason}" for reason in speed.unverified]
    lines += [f"nearest published: {_anchor(anchor)}" for anchor in speed.anchors]
    return lines


def _anchor(anchor: Anchor) -> str:
    plain, fast = anchor.plain_tokens_per_s, anchor.tokens_per_s
    rates = " -> ".join(f"{rate:,.5g}" for rate in (plain, fast) if rate is not None)
    speedup = f", {anchor.speedup:.2f}x" if anchor.speedup else ""
    acceptance = f", acceptance {anchor.acceptance:.2f}" if anchor.acceptance else ""
    return f"{anchor.name}: {rates} tok/s{speedup}{acceptance} ({anchor.runtime})"


def _show_settings(plan: "Plan") -> None:
    from rich.table import Table

    table = Table("field", "value", "from", title="settings", title_justify="left")
    for field, value in _flat(plan.pair.spec.model_dump(mode="json")):
        given = tuple(field.split(".")) in plan.pair.lines.of
        table.add_row(field, "" if value is None else str(value), "pair file" if given else "default")
    show_table(table)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in settings.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return rows


def size(count_bytes: int) -> str:
    """Bytes in GiB, or in MiB below one."""
    return f"{count_bytes / GIB:.1f} GiB" if abs(count_bytes) >= GIB else f"{count_bytes / 2**20:.0f} MiB"
