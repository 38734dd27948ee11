"""`tandem report`."""

import json
from pathlib import Path

import click

from builder.cli.options import config_argument, json_option, places_options
from builder.pipeline.session import Places, Session


@click.command()
@config_argument
@places_options
@json_option
def command(config: Path, places: Places, as_json: bool) -> None:
    """Print the report of the last validation.

    Example: tandem report configs/pairs/smollm2-135m-cpu.yaml
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from builder.pipeline.serve import saved_report

    session = Session.open(config, places)
    report = saved_report(session)
    if as_json:
        click.echo(json.dumps(report))
    else:
        Console().print(Markdown(session.workspace.path("report.md").read_text(encoding="utf-8")))
