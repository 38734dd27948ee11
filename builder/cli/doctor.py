"""`tandem doctor`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli.options import build_root_option, json_option
from builder.errors import ExitCode

if TYPE_CHECKING:
    from builder.pipeline.doctor import Check, Examination, Lane


@click.command()
@click.option("--lane", metavar="NAME", help="Judge this engine plug-in; otherwise the one that a pair file has by default.")
@click.option("--network", is_flag=True, help="Try to reach the model hub, too.")
@build_root_option
@json_option
def command(lane: str | None, network: bool, build_root: Path, as_json: bool) -> int:
    """Show what is here, what each lane lacks, and the command that mends it.

    Exit code 3 means that the judged lane can build nothing here; the last line says whether it can still be planned.

    Example: tandem doctor --lane openvino
    """
    from builder.pipeline.doctor import examine

    found = examine(build_root, lane, network=network)
    if as_json:
        click.echo(json.dumps(found.as_dict()))
    else:
        _show(found)
    return ExitCode.DONE if found.judged.builds else ExitCode.MISSING


def _show(found: "Examination") -> None:
    _section("This machine", found.machine)
    _section("To serve", found.server)
    click.echo("Lanes")
    for lane in found.lanes:
        _show_lane(lane)
    click.echo("Extras")
    for extra in found.extras:
        state = f"no {', '.join(extra.missing)}" if extra.missing else ", ".join(extra.others) or "every package"
        _row(extra.ready, extra.name, state, extra.fix)
    click.echo(_verdict(found.judged))


def _verdict(lane: "Lane") -> str:
    """Planning needs neither the lane's packages nor its chip."""
    if lane.builds:
        return f"The lane {lane.name} builds here."
    return f"The lane {lane.name} cannot build here{'; tandem plan works for it anyway' if lane.plans else ''}."


def _section(title: str, checks: "tuple[Check, ...]") -> None:
    click.echo(title)
    for check in checks:
        _row(check.present, check.name, check.found, check.fix)


def _show_lane(lane: "Lane") -> None:
    """Lanes that are ready take one line."""
    words = (
        f"{verb} here: {'yes' if can else 'no'}" for verb, can in (("plans", lane.plans), ("builds", lane.builds), ("serves", lane.serves))
    )
    _row(lane.builds and lane.serves, lane.name, "; ".join(words), "")
    for check in lane.checks:
        if not check.present:
            _row(False, f"  {check.name}", check.found, check.fix)


def _row(present: bool, name: str, found: str, fix: str) -> None:
    mark = click.style("ok     ", fg="green") if present else click.style("missing", fg="yellow")
    click.echo(f"  {mark} {name:<24} {found}")
    if not present and fix:
        click.echo(f"{'':35}-> {fix}")
