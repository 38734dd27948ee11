"""`tandem run`."""

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
    """Plan, build, package, validate and report. Finished stages are reused; exit code 1 when a gate fails.

    Example: tandem run configs/pairs/smollm2-135m-cpu.yaml
    """
    from builder.pipeline import run
    from builder.pipeline.validate import validate_and_report
    from builder.serving.installation import require_server

    began = time.monotonic()
    session = Session.open(config, places)
    session.require_ok()
    require_server(tritonserver)
    session.workspace.root.mkdir(parents=True, exist_ok=True)
    with session.workspace.locked(), StageDisplay(session, quiet=options["quiet"]) as display:
        session.workspace.write_json("plan.json", session.plan.as_dict())
        run.build(session, display.reporter, display.listener)
        run.package_repository(session, display.reporter, display.listener)
        validation = validate_and_report(
            session, tritonserver=tritonserver, progress=display.reporter("validate"), durations_s=display.durations_s
        )
    return conclude(validation, time.monotonic() - began, display.peak_memory_bytes, as_json=as_json)
