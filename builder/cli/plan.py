"""`tandem plan`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from builder.cli.console import progress_display, show_finding
from builder.cli.options import config_argument, json_option, places_options
from builder.cli.plan_difference import diff_option, show_difference
from builder.cli.plan_sweep import plan_sweep, sweep_options
from builder.errors import ExitCode, RefusedError
from builder.pipeline.session import Places, Session
from builder.planner.cost import HardwareAdvice
from builder.planner.plan import SCHEMA


@click.command()
@config_argument
@places_options
@json_option
@diff_option
@sweep_options
@click.option("--settings", is_flag=True, help="Show every setting too, and whether it is the pair file's or a default.")
@click.pass_obj
def command(
    options: dict[str, bool],
    config: Path,
    places: Places,
    as_json: bool,
    old: Path | None,
    axes: tuple[str, ...],
    plot: Path | None,
    settings: bool,
) -> int:
    """Check a pair and show what would be built, what is reused, and what it should take and give; nothing is built.

    Example: tandem plan configs/pairs/smollm2-135m-cpu.yaml

    \b
    Also: tandem plan pair.yaml --models /models --offline
          tandem plan pair.yaml --diff build/my-pair
          tandem plan pair.yaml --sweep kv=fp8,bf16 --sweep batch=1,8,32 --plot sweep.png
          tandem plan pair.yaml --sweep all
    """
    if axes or plot:
        _refuse_both(old)
        return plan_sweep(config, places, axes, plot, as_json=as_json, quiet=options["quiet"])
    try:
        session = Session.open(config, places, hash_weights=False)
    except RefusedError as error:
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, "ok": False, "findings": [finding.as_dict() for finding in error.findings]}))
        raise
    with progress_display("smallest hardware", quiet=options["quiet"] or not session.plan.goal_is_stated) as progress:
        advice = None if old is not None else session.smallest_hardware(places, progress)
    if old is not None:
        show_difference(old, _as_dict(session, advice), as_json=as_json)
    elif as_json:
        click.echo(json.dumps(_as_dict(session, advice), default=str))
    else:
        _show(session, advice, settings=settings)
    return ExitCode.DONE if session.plan.ok else ExitCode.REFUSED


def _refuse_both(old: Path | None) -> None:
    if old is not None:
        message = "--diff compares one plan with another, --sweep makes many"
        raise RefusedError("PLAN-DIFF-SWEEP", message, field="--diff", found="both", needed="one of them", fix="leave one out")


def _as_dict(session: Session, advice: HardwareAdvice | None) -> dict[str, Any]:
    plan = session.plan.as_dict()
    reuse = [session.workspace.reuse(stage, verify=False) for stage in session.plan.stages]
    stages = [{**stage, "reused": r.hit, "reason": r.reason} for stage, r in zip(plan["stages"], reuse, strict=True)]
    return {**plan, "stages": stages, **({"hardware": advice.as_dict()} if advice else {})}


def _show(session: Session, advice: HardwareAdvice | None, *, settings: bool) -> None:
    from builder.cli.plan_view import WORST_LAST, count_findings, show_plan

    show_plan(session, advice, settings=settings)
    if sys.stdout is not None:
        sys.stdout.flush()
    plan = session.plan
    for finding in sorted(plan.findings, key=lambda f: WORST_LAST.index(f.severity)):
        show_finding(finding, brief=finding.severity == "info")
    if not plan.ok:
        click.echo(f"refused: {count_findings(plan)}", err=True)
