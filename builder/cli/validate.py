"""`tandem validate`."""

import time
from pathlib import Path

import click

from builder.cli.options import config_argument, json_option, places_options, tritonserver_option
from builder.cli.stages import StageDisplay, conclude
from builder.pipeline.session import Places, Session


@click.command()
@config_argument
@places_options
@json_option
@tritonserver_option
@click.pass_obj
def command(options: dict[str, bool], config: Path, places: Places, as_json: bool, tritonserver: Path | None) -> int:
    """Judge the packaged repository on a server of its own; exit code 1 when a gate fails.

    Example: tandem validate configs/pairs/smollm2-135m-cpu.yaml
    """
    from builder.pipeline.validate import validate_and_report

    began = time.monotonic()
    session = Session.open(config, places)
    session.require_ok()
    with session.workspace.locked(), StageDisplay(session, quiet=options["quiet"]) as display:
        validation = validate_and_report(session, tritonserver=tritonserver, progress=display.reporter("validate"), durations_s={})
    return conclude(validation, time.monotonic() - began, 0, as_json=as_json)
