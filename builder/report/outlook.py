"""What the plan had said, beside what this run measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from builder.report.model import Gate

Row = tuple[str, str, str]


def outlook_rows(plan: Mapping[str, Any], gates: Sequence[Gate]) -> list[Row]:
    """Quantity, planned, measured ("" where this run did not measure it), out of the object of `tandem plan --json`."""
    return [*_memory_rows(plan.get("memory", {})), *_speed_rows(plan.get("speed", {}), {gate.name: gate.details for gate in gates})]


def _memory_rows(memory: Mapping[str, Any]) -> list[Row]:
    rows = []
    for role in ("target", "draft"):
        if share := memory.get(role):
            pool = f"{share['pool_tokens']:,} tokens, {_megabytes(share['pool_bytes'])}"
            rows += [(f"{role}: weights", _megabytes(share["weights_bytes"]), ""), (f"{role}: KV pool", pool, "")]
    return rows


def _speed_rows(speed: Mapping[str, Any], details: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    """Gates are measured one request at a time, so the plan's row for batch 1 is theirs."""
    alone = next((row for row in speed.get("rows", ()) if row["batch"] == 1), None)
    if alone is None:
        return []
    measured, acceptance = details.get("speed", {}), details.get("acceptance", {})
    band = f"within {speed['error_band']:.0%}, from {speed['provider']}"
    rows = [
        ("target alone, tokens/s", f"{alone['plain_tokens_per_s']:.1f} ({band})", _number(measured.get("target_tokens_per_s"), ".1f")),
        ("with drafts, tokens/s", f"{alone['speculative_tokens_per_s']:.1f}", _number(measured.get("speculative_tokens_per_s"), ".1f")),
        ("speed-up", f"{alone['speedup']:.2f}", _number(measured.get("speedup"), ".2f")),
    ]
    planned = speed["acceptance"]
    return [*rows, ("acceptance", f"{planned['value']:.2f} ({planned['source']})", _number(acceptance.get("acceptance_rate"), ".2f"))]


def _number(value: Any, form: str) -> str:
    return format(value, form) if isinstance(value, int | float) else ""


def _megabytes(count_bytes: int) -> str:
    return f"{count_bytes / 1e6:,.0f} MB"
