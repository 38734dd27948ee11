"""`tandem build`."""

from pathlib import Path

import click

from builder.cli.options import build_root_option, config_argument
from builder.cli.stages import StageDisplay
from builder.pipeline.session import Session


@click.command()
@config_argument
@build_root_option
@click.pass_obj
def command(options: dict[str, bool], config: Path, build_root: Path) -> None:
    """Build the engines that are not there yet.

    Example: tandem build configs/pairs/smollm2-135m-cpu.yaml
    """
    from builder.pipeline import run

    session = Session.open(config, build_root)
    session.require_ok()
    with session.workspace.locked(), StageDisplay(session, quiet=options["quiet"]) as display:
        run.build(session, display.reporter, display.listener)
    click.echo(f"engines: {session.workspace.path('engines')}")
