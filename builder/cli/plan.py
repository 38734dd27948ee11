"""`tandem plan`."""

import json
from pathlib import Path
from typing import Any

import click

from builder.cli.console import show_finding, show_table
from builder.cli.options import build_root_option, config_argument, json_option
from builder.errors import ExitCode
from builder.pipeline.session import Session


@click.command()
@config_argument
@build_root_option
@json_option
def command(config: Path, build_root: Path, as_json: bool) -> int:
    """Check a pair and show what would be built and what is reused; nothing is written but a cache of digests.

    Example: tandem plan configs/pairs/smollm2-135m-cpu.yaml
    """
    session = Session.open(config, build_root)
    plan = session.plan
    if as_json:
        stages = [{**stage, **_reuse(session, i)} for i, stage in enumerate(plan.as_dict()["stages"])]
        click.echo(json.dumps({**plan.as_dict(), "stages": stages}, default=str))
    else:
        for finding in plan.findings:
            show_finding(finding)
        if plan.ok:
            _show(session)
    return ExitCode.DONE if plan.ok else ExitCode.REFUSED


def _reuse(session: Session, index: int) -> dict[str, Any]:
    reuse = session.workspace.reuse(session.plan.stages[index], verify=False)
    return {"reused": reuse.hit, "reason": reuse.reason}


def _show(session: Session) -> None:
    from rich.table import Table

    plan = session.plan
    stages = Table("stage", "what happens", "why", title=f"{plan.pair.spec.name}: stages", title_justify="left")
    for stage in plan.stages:
        reuse = session.workspace.reuse(stage, verify=False)
        stages.add_row(stage.name, "reused" if reuse.hit else "runs", reuse.reason)
    for name in ("validate", "report"):
        stages.add_row(name, "runs", "always measured anew")
    show_table(stages)
    memory = Table("engine", "weights", "other", "KV per token", "pool", "together", title="memory", title_justify="left")
    for m in plan.memory:
        pool = f"{m.pool_tokens} tokens, {m.pool_bytes / 1e6:.0f} MB"
        weights, other, total = (f"{n / 1e6:.0f} MB" for n in (m.weights_bytes, m.other_bytes, m.total_bytes))
        memory.add_row(m.role, weights, other, f"{m.kv_bytes_per_token} bytes", pool, total)
    show_table(memory)
    _show_speed(plan.speed or {})
    _show_settings(plan.pair.spec.model_dump(mode="json"), session)


def _show_speed(speed: Any) -> None:
    ratio = speed.get("draft_cost_ratio")
    if ratio is not None:
        click.echo(
            f"prediction (from {speed['provider']}; {speed['error_band']}): a draft token costs {ratio:.2f} of a target pass, "
            f"so drafting pays above an acceptance of about {speed['break_even_acceptance']:.2f}\n"
        )


def _show_settings(settings: dict[str, Any], session: Session) -> None:
    from rich.table import Table

    table = Table("field", "value", "from", title="settings", title_justify="left")
    for field, value in _flat(settings):
        given = tuple(field.split(".")) in session.plan.pair.lines.of
        table.add_row(field, "" if value is None else str(value), "pair file" if given else "default")
    show_table(table)


def _flat(settings: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in settings.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(f"{prefix}{name}", value)]
    return rows
