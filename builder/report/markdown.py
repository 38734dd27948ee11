"""report.md: the verdict first, then numbers, then what is needed to repeat them."""

from collections.abc import Mapping, Sequence
from typing import Any

from builder.report.model import Gate, Report
from builder.report.outlook import Row, outlook_rows

COLUMNS = {
    "speedup": "speed-up",
    "speedup_min": "least",
    "speedup_max": "greatest",
    "target_tokens_per_s": "target tok/s",
    "speculative_tokens_per_s": "speculative tok/s",
    "acceptance_rate": "acceptance",
    "tokens_per_pass": "tokens per pass",
    "from_draft_model": "tokens from draft model",
    "from_lookup": "tokens from lookup",
    "draft_time_share": "time in draft",
    "target_time_share": "time in target",
}
PERCENT = frozenset({"acceptance_rate", "draft_time_share", "target_time_share"})


def render_markdown(report: Report) -> str:
    """The whole page."""
    parts = [
        f"# {report.name}: {report.verdict}",
        f"Made {report.created_at}. Every number below was measured in this run, but for the column `planned`.",
        "## Gates",
        table(("gate", "result", "value", "threshold", "unit"), [_gate_row(g) for g in report.gates]),
        *(_gate_section(g) for g in report.gates),
        _kinds_section(report.kinds),
        _outlook_section(outlook_rows(report.plan, report.gates)),
        _facts("Durations", {k: f"{v:.1f} s" for k, v in report.durations_s.items()}),
        _facts("Machine", report.machine),
        _facts("Versions", report.versions),
        _commands(report.commands),
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; bars and line ends in cells are made harmless."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(c) for c in line) + " |" for line in lines)


def number(value: Any) -> str:
    """Four significant digits; a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def _gate_row(gate: Gate) -> tuple[str, ...]:
    return gate.name, "pass" if gate.passed else "**FAIL**", number(gate.value), number(gate.threshold), gate.unit


def _gate_section(gate: Gate) -> str:
    parts = [f"### {gate.name}", gate.summary]
    simple = {k: v for k, v in gate.details.items() if not isinstance(v, Mapping) and not _is_table(v)}
    if simple:
        parts.append(table(("measure", "value"), [(k.replace("_", " "), _plain(v)) for k, v in simple.items()]))
    for name, rows in gate.details.items():
        if _is_table(rows):
            parts += [f"{name.replace('_', ' ').capitalize()}:", table(tuple(rows[0]), [[_plain(v) for v in row.values()] for row in rows])]
    return "\n\n".join(parts)


def _is_table(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _plain(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(number(v) for v in value) or "none"
    return number(value)


def _kinds_section(kinds: Mapping[str, Mapping[str, Any]]) -> str:
    if not kinds:
        return ""
    columns = [c for c in COLUMNS if any(c in row for row in kinds.values())]
    rows = [[kind, *(_column(c, row.get(c)) for c in columns)] for kind, row in kinds.items()]
    return "## By kind of prompt\n\n" + table(("kind", *(COLUMNS[c] for c in columns)), rows)


def _outlook_section(rows: Sequence[Row]) -> str:
    return "## Planned and measured\n\n" + table(("what", "planned", "measured"), rows) if rows else ""


def _column(name: str, value: Any) -> str:
    if isinstance(value, float) and name in PERCENT:
        return f"{value:.1%}"
    return f"{value:.2f}" if isinstance(value, float) else number(value)


def _facts(title: str, facts: Mapping[str, str]) -> str:
    return f"## {title}\n\n" + table(("what", "value"), list(facts.items())) if facts else ""


def _commands(commands: Sequence[str]) -> str:
    return "## To repeat\n\n```sh\n" + "\n".join(commands) + "\n```" if commands else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
