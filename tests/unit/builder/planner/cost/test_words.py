"""Numbers of cost in words."""

import pytest

from builder.planner.cost.words import count, money, rate


@pytest.mark.parametrize(
    ("amount", "text"),
    [(12345.6, "12,346 EUR"), (100, "100 EUR"), (1, "1.00 EUR"), (0.38974, "0.39 EUR")],
)
def test_money(amount: float, text: str) -> None:
    assert money(amount, "EUR") == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(12.34, "12.3"), (100, "100"), (999_999, "999,999"), (1e6, "1 M"), (5.4e8, "540 M"), (1e9, "1 billion"), (2.5e12, "2.5 trillion")],
)
def test_count(number: float, text: str) -> None:
    assert count(number) == text


@pytest.mark.parametrize(("tokens_per_s", "text"), [(50.04, "50 tokens/s"), (1.5, "1.5 tokens/s"), (2566.4, "2,566 tokens/s")])
def test_rate(tokens_per_s: float, text: str) -> None:
    assert rate(tokens_per_s) == text
