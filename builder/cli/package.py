"""`tandem package`."""

from pathlib import Path

import click

from builder.cli.options import config_argument, places_options
from builder.cli.stages import StageDisplay
from builder.pipeline.session import Places, Session


@click.command()
@config_argument
@places_options
@click.pass_obj
def command(options: dict[str, bool], config: Path, places: Places) -> None:
    """Write the model repository, after building what is missing.

    Example: tandem package configs/pairs/smollm2-135m-cpu.yaml
    """
    from builder.pipeline import run

    session = Session.open(config, places)
    session.require_ok()
    with session.workspace.locked(), StageDisplay(session, quiet=options["quiet"]) as display:
        run.build(session, display.reporter, display.listener)
        run.package_repository(session, display.reporter, display.listener)
    click.echo(f"model repository: {session.workspace.path('model_repository')}")
