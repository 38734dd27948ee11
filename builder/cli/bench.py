"""`tandem bench engine`."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder.cli.console import progress_display, show_error, show_table
from builder.cli.options import config_argument, json_option, places_options
from builder.errors import ExitCode
from builder.pipeline.session import Places, Session

if TYPE_CHECKING:
    from builder.bench.report import BenchReport

FILE, FOLDER = click.Path(path_type=Path, dir_okay=False), click.Path(path_type=Path, file_okay=False)
RESULT_FILE = "bench-engine.json"


@click.group()
def command() -> None:
    """Measurements against other engines.

    Example: tandem bench engine configs/pairs/smollm2-135m-cpu.yaml
    """


@command.command()
@config_argument
@places_options
@json_option
@click.option("--peers", type=FOLDER, default=Path("benchmarks/peers"), show_default=True, help="Folder of the peers.")
@click.option("--prompts", type=FILE, default=None, help="Prompts as JSON lines; otherwise those of the gates.")
@click.option("--prompts-per-kind", type=click.IntRange(1), default=2, show_default=True)
@click.option("--new-tokens", type=click.IntRange(1), default=128, show_default=True)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True)
@click.option("--concurrency", type=click.IntRange(0), default=16, show_default=True, help="Requests at once; 0 or 1 leaves that part out.")
@click.option("--threads", type=click.IntRange(1), default=2, show_default=True, help="Threads of every engine.")
@click.option("--output", type=FILE, default=None, help="Write the page, or its part of a page, here.")
@click.option("--check", is_flag=True, help="Exit code 1 when a line is below what must be reached.")
@click.pass_obj
def engine(
    options: dict[str, bool],
    /,
    config: Path,
    places: Places,
    as_json: bool,
    peers: Path,
    prompts: Path | None,
    output: Path | None,
    check: bool,
    **numbers: int,
) -> int:
    """Measure the engine of a built pair against other engines in one run, all systems in turn on each prompt.

    Peers are installed by `make bench-peers`; those that are not are left out, with the command that installs them.

    Example: tandem bench engine configs/pairs/smollm2-135m-cpu.yaml --output docs/benchmarks.md
    """
    from builder.bench.report import BenchSettings
    from builder.pipeline.bench import bench_pair

    session = Session.open(config, places)
    session.require_ok()
    settings = BenchSettings(**numbers)
    with progress_display("bench", quiet=options["quiet"]) as progress:
        report = bench_pair(session, peers=peers, prompts=prompts, settings=settings, command=_command(), progress=progress)
    session.workspace.write_json(RESULT_FILE, report.as_dict())
    if output is not None:
        _write_page(report, output)
    _show(report, session.workspace.path(RESULT_FILE), as_json=as_json)
    if report.failed:
        return ExitCode.STAGE_FAILED
    return ExitCode.GATE_FAILED if check and report.missed else ExitCode.DONE


def _command() -> str:
    """The command line as it was typed."""
    import sys

    return shlex.join(["tandem", *sys.argv[1:]])


def _write_page(report: "BenchReport", output: Path) -> None:
    from builder.bench.markdown import write_page

    write_page(report, output)


def _show(report: "BenchReport", file: Path, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.as_dict()))
        return
    from rich.table import Table

    from builder.bench.markdown import COLUMNS, row_cells

    shown = Table(*COLUMNS, title=f"{report.name}: the engine against its peers", title_justify="left")
    for row in report.rows:
        shown.add_row(*row_cells(row))
    show_table(shown)
    for error in report.absent.values():
        show_error(error)
    click.echo(f"every number: {file}")
