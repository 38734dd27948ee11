"""What people see: errors, findings, progress. Rich is imported when something is shown."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from builder.errors import Finding, StageError, TandemError

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


def show_error(error: TandemError) -> None:
    """Every finding of an error, then the log and its last lines, on standard error."""
    for finding in error.findings:
        show_finding(finding)
    if isinstance(error, StageError):
        for line in error.last_lines:
            click.echo(f"  | {line}", err=True)
        if error.log:
            click.echo(f"  log: {error.log}", err=True)


def show_finding(finding: Finding, *, brief: bool = False) -> None:
    """Code and sentence; what was found and needed and the way out, unless `brief`."""
    word = click.style(finding.severity, fg=COLOURS[finding.severity], bold=True)
    click.echo(f"{word} [{finding.code}] {finding.message}", err=True)
    if brief:
        return
    details = (("found", finding.found), ("needed", finding.needed), ("fix", finding.fix))
    for name, value in details:
        if value:
            click.echo(f"  {name + ':':<8}{value}", err=True)


def show_table(table: "Table") -> None:
    """Print a rich table on standard output."""
    from rich.console import Console

    Console().print(table)


Progress = Callable[[str, float | None], None]


@contextmanager
def progress_display(title: str, *, quiet: bool) -> Iterator[Progress]:
    """A progress line on standard error; silent when quiet, one plain line a step when not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if quiet:
        yield lambda _text, _share: None
        return
    if not console.is_terminal:
        yield _plain_lines(title)
        return
    columns = (SpinnerColumn(), TextColumn("{task.fields[title]}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=console, transient=True) as bars:
        task = bars.add_task("", total=None, title=title)
        yield lambda text, share: bars.update(task, description=text, total=None if share is None else 1.0, completed=share or 0.0)


def _plain_lines(title: str) -> Progress:
    shown: list[str] = []

    def show(text: str, _share: float | None) -> None:
        step = text.split(" (")[0]
        if step not in shown:
            shown.append(step)
            click.echo(f"{title}: {step}", err=True)

    return show
