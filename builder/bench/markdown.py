"""The page: comparisons first, then each system's speed by kind of prompt, what speculation gave, and what is needed to repeat it."""

from pathlib import Path

from builder.bench.report import BenchReport
from builder.bench.rows import PLAIN, SPECULATIONS, Row
from builder.bench.statistics import Likeness, Samples, Spread, speedup, tokens_per_s
from builder.bench.systems import System
from builder.report.markdown import table
from builder.report.write import write_atomic

BEGIN, END = "<!-- tandem bench engine: begin -->", "<!-- tandem bench engine: end -->"

COLUMNS = ("ours", "against", "over", "ratio (least to greatest repeat)", "must reach", "aim", "result")


def write_page(report: BenchReport, file: Path) -> None:
    """Write the page: between its two marks where the file has them, else as the whole file."""
    page = f"{BEGIN}\n\n{render(report)}\n{END}"
    old = file.read_text(encoding="utf-8") if file.is_file() else ""
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    write_atomic(file, f"{before}{page}{after}" if begin and end else f"{page}\n")


def render(report: BenchReport) -> str:
    """Markdown, from a heading of the second level on."""
    parts = [
        "## The engine against its peers",
        _how(report),
        table(COLUMNS, [row_cells(row) for row in report.rows]),
        _absent(report),
        "### Every system",
        "Tokens per second, prefill included, and how its greedy answers agree with this engine's.",
        _systems(report),
        _together(report),
        "### Speculation by kind of prompt",
        _kinds(report),
        "### Machine and versions",
        table(("what", "value"), _facts(report)),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def _how(report: BenchReport) -> str:
    settings = report.settings
    prompts = {s.call.prompts for s in report.samples.all if not s.call.concurrent}
    return (
        f"`{report.command}`, {report.created_at}: {len(prompts)} prompts of {len(report.samples.kinds)} kinds, at most "
        f"{settings.new_tokens} new tokens, greedy, {settings.threads} threads, nothing kept between prompts; all systems in turn on each "
        f"prompt in one run, {settings.repeats} repeats. A ratio is the other's time over ours for the same prompts and equal numbers of "
        f"tokens; shown are each prompt's median repeat and, in brackets, the least and greatest repeat."
    )


def row_cells(row: Row) -> tuple[str, ...]:
    """A line of the table of comparisons, in the order of `COLUMNS`."""
    bounds = (_bound(row, bound) for bound in (row.must_reach, row.aim))
    result = f"**{row.result}**" if row.result == "missed" else row.result
    return (row.ours, row.against or "-", row.over, _spread(row.value, row.unit), *bounds, result)


def _bound(row: Row, bound: float | None) -> str:
    return "-" if bound is None else f"{'' if row.unit == 'x' else 'at most '}{bound:g}{_unit(row.unit)}"


def _spread(value: Spread | None, unit: str) -> str:
    if value is None:
        return "-"
    return f"{value.median:.2f}{_unit(unit)} ({value.least:.2f} to {value.greatest:.2f})"


def _unit(unit: str) -> str:
    return unit if unit == "x" else f" {unit}"


def _absent(report: BenchReport) -> str:
    lines = [f"- {error.finding.message}" + (f": `{error.finding.fix}`" if error.finding.fix else "") for error in report.absent.values()]
    return "Not measured, or not to the end:\n\n" + "\n".join(lines) if lines else ""


def _systems(report: BenchReport) -> str:
    samples, kinds, alike = report.samples, report.samples.kinds, report.alike
    rows = [_system(samples, system, kinds, alike.get(system.key)) for system in report.single if samples.of(system.key).all]
    return table(("system", "mix (least to greatest repeat)", *kinds, "equal answers", "equal first tokens, median"), rows)


def _system(samples: Samples, system: System, kinds: tuple[str, ...], like: Likeness | None) -> tuple[str, ...]:
    own = samples.of(system.key)
    by_kind = (samples.of(system.key, kind=kind).spread(tokens_per_s) for kind in kinds)
    alike = (f"{like.equal_answers} of {like.answers}", f"{like.equal_first_tokens:g}") if like else ("-", "-")
    return (system.label, _speed(own.spread(tokens_per_s)), *(f"{s.median:.0f}" if s else "-" for s in by_kind), *alike)


def _speed(spread: Spread | None) -> str:
    return f"{spread.median:.0f} ({spread.least:.0f} to {spread.greatest:.0f})" if spread else "-"


def _together(report: BenchReport) -> str:
    rows = [
        (system.label, _speed(report.samples.of(system.key, concurrent=True).spread(tokens_per_s)))
        for system in report.concurrent
        if report.samples.of(system.key, concurrent=True).all
    ]
    return table((f"{report.settings.concurrency} requests at once", "tokens per second (least to greatest repeat)"), rows) if rows else ""


def _kinds(report: BenchReport) -> str:
    samples = report.samples
    key = next((k for k in SPECULATIONS if samples.of(k).all), PLAIN)
    rows = [_kind(samples, key, kind) for kind in (*samples.kinds, None)]
    return table(("kind", "speed-up over target only", "tokens per pass", "accepted of draft model", "accepted of lookup"), rows)


def _kind(samples: Samples, key: str, kind: str | None) -> tuple[str, ...]:
    own = samples.of(key, kind=kind)
    work = [s.answers.work for s in own.all if s.answers.work is not None]
    rounds = sum(w.rounds for w in work)
    by_lookup = (sum(w.lookup_accepted_tokens for w in work), sum(w.lookup_drafted_tokens for w in work))
    all_drafts = (sum(w.accepted_tokens for w in work), sum(w.drafted_tokens for w in work))
    return (
        kind or "**mix**",
        _spread(speedup(own, samples.of(PLAIN, kind=kind)), "x"),
        f"{sum(s.tokens for s in own.all) / rounds:.2f}" if rounds else "-",
        f"{all_drafts[0] - by_lookup[0]} of {all_drafts[1] - by_lookup[1]}",
        f"{by_lookup[0]} of {by_lookup[1]}",
    )


def _facts(report: BenchReport) -> list[tuple[str, str]]:
    told = [(party, "; ".join(f"{name}: {text}" for name, text in facts.items())) for party, facts in report.facts.items()]
    return [*report.machine.items(), *told]
