"""`tandem plan --sweep`: many plans of one pair side by side, and the smallest hardware that meets its goal."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from builder.cli.console import progress_display
from builder.errors import ExitCode
from builder.pipeline.session import Places, plan_many
from builder.spec import load_pair

DEFAULT_AXES = "all"


def sweep_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--sweep` and `--plot`."""
    axes = click.option(
        "--sweep",
        "axes",
        multiple=True,
        metavar="FIELD=V1,V2",
        help="Plan every combination; kv, k, batch, chip, count or a dotted field. "
        f"`--sweep {DEFAULT_AXES}`: kv, k and batch, beside what else is given.",
    )
    plot = click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png", help="Draw the sweep.")
    return axes(plot(command))


def plan_sweep(config: Path, places: Places, axes: tuple[str, ...], plot: Path | None, *, as_json: bool, quiet: bool) -> int:
    """Print the sweep, and draw it when asked. Exit code 2 when every row is refused. Raises RefusedError SWEEP-*."""
    from builder.cli.sweep import show_sweep
    from builder.planner.sweep import check_plot_file, run_sweep, write_plot

    if plot is not None:
        check_plot_file(plot)
    pair = load_pair(config)
    evaluate = plan_many(places, pair)
    with progress_display("sweep", quiet=quiet) as progress:
        result = run_sweep(pair, axes, evaluate, progress)
    if plot is not None:
        write_plot(result, plot)
    if as_json:
        click.echo(json.dumps(result.as_dict(), default=str))
    else:
        show_sweep(result)
    return ExitCode.DONE if result.figures else ExitCode.REFUSED


__all__ = ["plan_sweep", "sweep_options"]
