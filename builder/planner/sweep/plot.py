"""The sweep as a picture: capacity against speed. The only module that imports matplotlib, and only when it draws."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from builder.errors import MissingError, RefusedError
from builder.planner.sweep.labels import Box, place_labels
from builder.planner.sweep.model import RowFigures, Sweep, SweepRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INCHES, DPI = (13.0, 6.5), 150
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which people with any colour vision can tell apart; markers differ too."""
MARKERS = "osD^vP*"
SERIES_BY = ("hardware.chip", "target.kv_cache", "target.weights")
MOST_LISTED, LISTING_WIDTH = 16, 52

Value = Callable[[RowFigures], float]


def write_plot(sweep: Sweep, file: Path) -> None:
    """Draw the sweep to a PNG file.

    Raises MissingError PACKAGE-MISSING without matplotlib, RefusedError SWEEP-PLOT-EMPTY when no row works, SWEEP-PLOT-FILE when the file
    cannot be written or is named as no PNG.
    """
    check_plot_file(file)
    if not sweep.figures:
        message = f"nothing can be drawn: {sweep.sentence}"
        raise RefusedError("SWEEP-PLOT-EMPTY", message, found="no row that works", needed="one", fix="sweep other values")
    figure = draw(sweep)
    try:
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
    except OSError as error:
        raise _no_file(file, f"{file} cannot be written: {error.strerror or error}", "a file that can be written") from None


def check_plot_file(file: Path) -> None:
    """Raises RefusedError SWEEP-PLOT-FILE when a picture cannot go there: another kind of file, or no such folder."""
    if file.suffix.lower() != ".png":
        raise _no_file(file, f"a plot is a PNG picture, and {file} is named as something else", "a name that ends in .png")
    if not file.parent.is_dir():
        raise _no_file(file, f"{file} cannot be written: there is no folder {file.parent}", "a folder that is there")


def _no_file(file: Path, message: str, needed: str) -> RefusedError:
    fix = f"--plot {file.with_suffix('.png').name}"
    return RefusedError("SWEEP-PLOT-FILE", message, field="--plot", found=str(file), needed=needed, fix=fix)


def draw(sweep: Sweep) -> "Figure":
    """Two panels with one vertical axis, speed per user: against what the pools hold, and against what a chip serves."""
    figure = _new_figure()
    left, right = figure.subplots(1, 2, sharey=True)
    figure.subplots_adjust(left=0.06, right=0.72, top=0.9, bottom=0.15, wspace=0.06)
    _panel(left, sweep, lambda f: f.capacity_tokens / 1000, "KV cache, thousand tokens")
    _panel(right, sweep, lambda f: f.tokens_per_s_per_chip, "tokens/s of each chip" if _many_chips(sweep) else "tokens/s in all")
    left.set_ylabel("tokens/s per user")
    figure.suptitle(f"{sweep.name}: capacity against speed (prediction)", x=0.06, ha="left", fontsize=13, fontweight="bold")
    handles, names = right.get_legend_handles_labels()
    figure.legend(handles, names, loc="upper left", bbox_to_anchor=(0.725, 0.915), frameon=False, fontsize=9)
    figure.text(0.735, 0.87 - 0.035 * len(names), _listing(sweep), fontsize=8.5, va="top", linespacing=1.5)
    figure.text(0.06, 0.035, _footer(sweep), fontsize=8, color="#444444", va="bottom", wrap=True)
    return figure


def _new_figure() -> "Figure":
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        fix = "pip install 'trt-tandem[plot]'"
        raise MissingError(
            "PACKAGE-MISSING", "a plot needs the package matplotlib", found="not installed", needed="matplotlib", fix=fix
        ) from None
    figure = Figure(figsize=INCHES, dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _panel(axes: "Axes", sweep: Sweep, across: Value, title: str) -> None:
    points = [(row, across(figures), figures.tokens_per_s_per_user) for row, figures in sweep.figures]
    for index, (name, rows) in enumerate(_series(sweep).items()):
        own = [point for point in points if point[0].number in rows]
        _markers(axes, sweep, own, name, index % len(COLOURS))
    inner = _edge([(x, y) for _, x, y in points])
    edge = [(0.0, inner[0][1]), *inner, (inner[-1][0], 0.0)]
    name = "front: nothing is above it and to its right"
    axes.step([x for x, _ in edge], [y for _, y in edge], where="pre", color="#777777", linewidth=1.2, zorder=1, label=name)
    axes.set_xlim(0, max(x for _, x, _ in points) * 1.12)
    axes.set_ylim(0, max(y for _, _, y in points) * 1.12)
    axes.set_xlabel(title)
    axes.grid(color="#E5E5E5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    _label(axes, sweep, points)


def _markers(axes: "Axes", sweep: Sweep, points: Sequence[tuple[SweepRow, float, float]], name: str, index: int) -> None:
    """Rows of the front are filled and lie above others; a ring marks the row to take. Later series are smaller, to show those behind."""
    colour, marker, size = COLOURS[index], MARKERS[index], max(75 - 18 * index, 18)
    for filled in (False, True):
        own = [(x, y) for row, x, y in points if (row.number in sweep.front) == filled]
        fill, x, y = colour if filled else "none", [x for x, _ in own], [y for _, y in own]
        axes.scatter(x, y, s=size, marker=marker, facecolors=fill, edgecolors=colour, linewidths=1.3, zorder=3 + filled)
    axes.scatter([], [], s=38, marker=marker, c=colour, label=name)
    taken = [(x, y) for row, x, y in points if row.number == sweep.recommended]
    axes.scatter([x for x, _ in taken], [y for _, y in taken], s=220, marker="o", facecolors="none", edgecolors="#000000", zorder=4)


def _label(axes: "Axes", sweep: Sweep, points: Sequence[tuple[SweepRow, float, float]]) -> None:
    """The row's number beside each point, led to it by a line where there was no room close by."""
    places = [tuple(axes.transData.transform((x, y))) for _, x, y in points]
    texts = [str(row.number) for row, _, _ in points]
    window = axes.get_window_extent()
    offsets = place_labels(places, texts, Box(window.x0, window.y0, window.x1, window.y1), scale=DPI / 72)
    for (row, x, y), text, (dx, dy) in zip(points, texts, offsets, strict=True):
        weight = "bold" if row.number in sweep.front else "normal"
        line: dict[str, Any] = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3}
        arrow = line if abs(dx) + abs(dy) > 20 else None
        axes.annotate(
            text, (x, y), (dx, dy), textcoords="offset points", ha="center", va="center", fontsize=8, fontweight=weight, arrowprops=arrow
        )


def _series(sweep: Sweep) -> dict[str, frozenset[int]]:
    """Rows by the setting that a reader asks for first among those that were swept."""
    swept = [field for field, values in sweep.axes.items() if len(values) > 1]
    field = next((f for f in SERIES_BY if f in swept), None)
    if field is None:
        return {"plans": frozenset(row.number for row, _ in sweep.figures)}
    values = dict.fromkeys(row.settings[field] for row, _ in sweep.figures)
    return {f"{field} {value}": frozenset(r.number for r, _ in sweep.figures if r.settings[field] == value) for value in values}


def _edge(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points that no other is above and to the right of, from left to right."""
    edge: list[tuple[float, float]] = []
    for x, y in sorted(points, reverse=True):
        if not edge or y > edge[-1][1]:
            edge.append((x, y))
    return edge[::-1]


def _listing(sweep: Sweep) -> str:
    """What the numbers of the front's rows stand for, the row to take first."""
    order = sorted(sweep.front, key=lambda number: (number != sweep.recommended, number))
    names = {row.number: row.label for row in sweep.rows}
    lines = [f"{'Take ' if number == sweep.recommended else ''}{number}: {names[number]}" for number in order[:MOST_LISTED]]
    more = [f"and {len(order) - MOST_LISTED} more"] if len(order) > MOST_LISTED else []
    wrapped = [textwrap.fill(line, LISTING_WIDTH, subsequent_indent="    ") for line in lines]
    return "\n".join(["Rows that no other beats (filled):", *wrapped, *more])


def _footer(sweep: Sweep) -> str:
    refused = [row for row in sweep.rows if not row.ok]
    codes = ", ".join(dict.fromkeys(code for row in refused for code in row.codes[:1]))
    workload = f"{sweep.workload.input_tokens} tokens in, {sweep.workload.output_tokens} out"
    parts = [f"Step times: {', '.join(sweep.providers)}. Requests of {workload}."]
    if refused:
        parts.append(f"Not drawn: {len(refused)} refused ({codes}).")
    return " ".join(parts)


def _many_chips(sweep: Sweep) -> bool:
    return any(figures.chip_count > 1 for _, figures in sweep.figures)
