"""`tandem report`."""

import json
from pathlib import Path

import click

from builder.cli.options import build_root_option, config_argument, json_option
from builder.pipeline.session import Session


@click.command()
@config_argument
@build_root_option
@json_option
def command(config: Path, build_root: Path, as_json: bool) -> None:
    """Print the report of the last validation.

    Example: tandem report configs/pairs/smollm2-135m-cpu.yaml
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from builder.pipeline.serve import saved_report

    session = Session.open(config, build_root)
    report = saved_report(session)
    if as_json:
        click.echo(json.dumps(report))
    else:
        Console().print(Markdown(session.workspace.path("report.md").read_text(encoding="utf-8")))
