"""Tables as aligned text: whole in a narrow terminal, in a pipe and in a file, where a drawn table would be cut."""

from collections.abc import Sequence

import click


def show_columns(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a title, bold headings and rows on standard output; the first `left` columns to the left, the others to the right."""
    click.secho(title, bold=True)
    lines = columns([head, *rows], left)
    click.secho(f"  {lines[0]}", dim=True)
    for line in lines[1:]:
        click.echo(f"  {line}")
    click.echo()


def columns(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of columns. A shorter row's last cell takes the rest of the line."""
    whole = [row for row in rows if len(row) == len(rows[0])]
    widths = [max(len(row[i]) for row in (rows if i < left else whole) if i < len(row)) for i in range(len(rows[0]))]
    return ["  ".join(_padded(row, widths, left)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    whole = len(row) == len(widths)
    return [
        cell.ljust(width) if i < left else cell.rjust(width) if whole or i < len(row) - 1 else cell
        for i, (cell, width) in enumerate(zip(row, widths, strict=False))
    ]
