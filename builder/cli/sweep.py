"""A sweep and the cost of tokens, as tables for people."""

from collections.abc import Callable

import click

from builder.cli.columns import columns, show_columns
from builder.planner.cost import CostPlan, CostPoint, HardwareAdvice, Payback, money
from builder.planner.cost.words import count
from builder.planner.sweep import SHORT_NAMES, Sweep, SweepRow

HEADINGS = {field: short for short, field in SHORT_NAMES.items()}
PRECISIONS = frozenset({"target.kv_cache", "draft.kv_cache", "target.weights", "draft.weights"})


def show_sweep(sweep: Sweep) -> None:
    """Every row, refused ones with their code, and the sentence that says which to take."""
    swept = [field for field, values in sweep.axes.items() if len(values) > 1] or list(sweep.axes)
    workload = f"requests of {sweep.workload.input_tokens} tokens in, {sweep.workload.output_tokens} out"
    click.echo(f"{sweep.name}: {workload} (predictions)\n")
    cells = [_cells(sweep, row, swept) for row in sweep.rows]
    head, *lines = columns([_head(sweep, swept), *cells], left=1 + len(swept))
    click.secho(head, bold=True)
    for row, line in zip(sweep.rows, lines, strict=True):
        click.secho(line, bold=row.number == sweep.recommended, dim=not row.ok)
    click.echo(f"\n{sweep.sentence}\n")
    for note in _notes(sweep):
        click.echo(note)


def show_cost(cost: CostPlan, advice: HardwareAdvice | None = None) -> None:
    """Tokens per chip hour and, where a price is given, money per million tokens; payback; the smallest hardware for the goal."""
    per_million = [f"{cost.currency}/1M", "drafted"] if cost.price else []
    rows = [_point_cells(point, with_price=cost.price is not None) for point in cost.points]
    show_columns(f"cost, predicted{_price(cost)}", ("load", "tokens/chip-hour", "drafted", *per_million), rows)
    for payback in cost.paybacks:
        click.echo(_payback(payback, cost))
    if advice is not None:
        click.echo(advice.sentence)
    if cost.paybacks or advice is not None:
        click.echo()


def _cells(sweep: Sweep, row: SweepRow, swept: list[str]) -> list[str]:
    mark = "*" if row.number == sweep.recommended else "+" if row.number in sweep.front else ""
    cells = [f"{row.number}{mark}", *(str(row.settings.get(field, "any")) for field in swept)]
    figures = row.figures
    if figures is None:
        return [*cells, ", ".join(row.codes)]
    speeds = [f"{figures.tokens_per_s_per_user:.1f}", f"{figures.tokens_per_s:,.0f}", f"{figures.speedup:.2f}x"]
    cost = [] if sweep.price is None else [_or_dash(figures.per_million, _amount)]
    return [*cells, f"{figures.capacity_tokens:,}", f"{figures.sequences:,}", str(figures.batch), *speeds, *cost]


def _amount(value: float) -> str:
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _head(sweep: Sweep, swept: list[str]) -> list[str]:
    fields = [HEADINGS.get(field, field.rpartition(".")[2].replace("_", " ")) for field in swept]
    price = [f"{sweep.price.currency}/1M"] if sweep.price else []
    return ["row", *fields, "KV tokens", "requests", "users", "tok/s/user", "tok/s", "speed-up", *price]


def _notes(sweep: Sweep) -> list[str]:
    notes = ["* take this; + no other row beats it in capacity, speed per user and tokens per chip"]
    notes += sweep.notes
    if sweep.providers:
        notes.append(f"step times from {', '.join(sweep.providers)}")
    if len(sweep.providers) > 1:
        notes.append("rows whose step times come from different sources differ by that, too; planning.step_times: roofline is one for all")
    if any(figures.per_million is None for _, figures in sweep.figures) and sweep.price:
        notes.append("the price is that of the pair file's own chip; other chips have none")
    if any(len(sweep.axes.get(field, ())) > 1 for field in PRECISIONS):
        notes.append("fewer bits hold and serve more, but may change answers: the accuracy gate of `tandem validate` judges that")
    reasons = dict.fromkeys((row.codes[0], row.reason) for row in sweep.rows if not row.ok)
    return notes + [f"{code}: {reason}" for code, reason in _first_of_each(list(reasons))]


def _first_of_each(reasons: list[tuple[str, str]]) -> list[tuple[str, str]]:
    first: dict[str, str] = {}
    for code, reason in reasons:
        first.setdefault(code, reason)
    return list(first.items())


def _price(cost: CostPlan) -> str:
    if cost.price is None:
        return "; add planning.price to see money"
    source = f", {cost.price.source}" if cost.price.source else ""
    return f" at {money(cost.price.per_chip_hour, cost.currency)} per chip hour of {cost.price.date}{source}"


def _point_cells(point: CostPoint, *, with_price: bool) -> list[str]:
    load = point.load if point.batch == 1 else f"{point.load} (batch {point.batch})"
    tokens = [_or_dash(point.plain_tokens_per_chip_hour, count), _or_dash(point.speculative_tokens_per_chip_hour, count)]
    cost = [_or_dash(point.plain_per_million, _amount), _or_dash(point.speculative_per_million, _amount)]
    return [load, *tokens, *(cost if with_price else [])]


def _or_dash(value: float | None, words: Callable[[float], str]) -> str:
    return "-" if value is None else words(value)


def _payback(payback: Payback, cost: CostPlan) -> str:
    spent = f"the engineering cost of {money(payback.engineering_cost, cost.currency)}"
    if payback.hours is None or payback.tokens is None or cost.price is None:
        return f"at {payback.load} the draft never pays back {spent}"
    without = money(cost.price.per_chip_hour * cost.chip_count + payback.saving_per_hour, cost.currency)
    return (
        f"at {payback.load} an hour with the draft makes what costs {without} without it; {spent} is paid back in "
        f"{payback.hours:,.0f} hours or {count(payback.tokens)} tokens"
    )
