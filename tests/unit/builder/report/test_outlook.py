"""What the plan had said, beside what was measured."""

from dataclasses import dataclass, field
from typing import Any

from builder.report.markdown import render_markdown
from builder.report.model import make_report
from builder.report.outlook import outlook_rows

PLAN: dict[str, Any] = {
    "memory": {"target": {"weights_bytes": 134_000_000, "pool_tokens": 33_280, "pool_bytes": 431_000_000}},
    "speed": {
        "provider": "roofline",
        "error_band": 0.3,
        "acceptance": {"value": 0.7, "source": "assumed"},
        "rows": [
            {"batch": 1, "plain_tokens_per_s": 82.04, "speculative_tokens_per_s": 91.7, "speedup": 1.118},
            {"batch": 2, "plain_tokens_per_s": 127.0, "speculative_tokens_per_s": 131.0, "speedup": 1.03},
        ],
    },
}


@dataclass(frozen=True)
class Measured:
    name: str
    details: dict[str, Any]
    passed: bool = True
    value: float | None = 1.0
    threshold: float | None = 1.0
    unit: str = "x"
    summary: str = "fine"
    kinds: dict[str, Any] = field(default_factory=dict)


GATES = (
    Measured("speed", {"target_tokens_per_s": 116.44, "speculative_tokens_per_s": 134.1, "speedup": 1.152}),
    Measured("acceptance", {"acceptance_rate": 0.436}),
)


def test_planned_stands_beside_measured() -> None:
    assert outlook_rows(PLAN, GATES) == [
        ("target: weights", "134 MB", ""),
        ("target: KV pool", "33,280 tokens, 431 MB", ""),
        ("target alone, tokens/s", "82.0 (within 30%, from roofline)", "116.4"),
        ("with drafts, tokens/s", "91.7", "134.1"),
        ("speed-up", "1.12", "1.15"),
        ("acceptance", "0.70 (assumed)", "0.44"),
    ]


def test_what_was_not_measured_stays_empty_and_a_bare_plan_says_nothing() -> None:
    assert outlook_rows(PLAN, ())[2] == ("target alone, tokens/s", "82.0 (within 30%, from roofline)", "")
    assert outlook_rows({}, GATES) == []


def test_the_page_shows_both() -> None:
    page = render_markdown(make_report("pair", GATES, plan=PLAN))
    assert "## Planned and measured" in page
    assert "| speed-up | 1.12 | 1.15 |" in page
