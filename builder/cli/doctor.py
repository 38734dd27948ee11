"""`tandem doctor`."""

import json

import click

from builder.cli.options import json_option
from builder.errors import ExitCode


@click.command()
@json_option
def command(as_json: bool) -> int:
    """Show what is here for each lane and the command that mends what is missing.

    Example: tandem doctor
    """
    from builder.serving.doctor import checks

    results = checks()
    if as_json:
        click.echo(json.dumps({"schema": 1, "checks": [c.__dict__ for c in results]}))
    else:
        for check in results:
            mark = click.style("ok     ", fg="green") if check.present else click.style("missing", fg="yellow")
            click.echo(f"{mark} {check.name:<28} {check.found}" + ("" if check.present else f"\n          {check.fix}"))
    return ExitCode.DONE if all(c.present for c in results if c.needed) else ExitCode.MISSING
