"""`tandem explain`."""

import json

import click

from builder.cli.options import json_option
from builder.errors import RefusedError


@click.command()
@click.argument("code", required=False)
@click.option("--markdown", is_flag=True, help="The whole list as the page docs/errors.md.")
@json_option
def command(code: str | None, markdown: bool, as_json: bool) -> None:
    """Say what an error code means and what to do; without a code, list all of them.

    Example: tandem explain PAIR-VOCAB-SIZE
    """
    from builder.error_codes import codes_as_markdown, error_codes, find_code

    if markdown:
        _refuse_together(code, as_json)
        click.echo(codes_as_markdown(), nl=False)
        return
    rows = [find_code(code)] if code else list(error_codes().values())
    if as_json:
        click.echo(json.dumps({"schema": 1, "codes": [row.as_dict() for row in rows]}))
    elif code:
        click.echo(f"{rows[0].code} ({rows[0].group})\n  meaning: {rows[0].meaning}\n  way out: {rows[0].way_out}")
    else:
        _list()


def _refuse_together(code: str | None, as_json: bool) -> None:
    other = code or ("--json" if as_json else "")
    if other:
        message = f"--markdown prints the whole list, {other} asks for something else"
        raise RefusedError("EXPLAIN-BOTH", message, found=f"--markdown and {other}", needed="one of them", fix=f"leave {other} out")


def _list() -> None:
    from builder.error_codes import by_group

    for title, rows in by_group():
        click.echo(click.style(title, bold=True))
        for row in rows:
            click.echo(f"  {row.code:<24} {row.meaning}")
