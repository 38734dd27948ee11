"""Cost by the formula and against published throughput at published prices."""

from collections.abc import Callable
from datetime import date

import pytest

from builder.planner.cost import plan_cost
from builder.planner.cost.model import cost_per_million
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed

PRICE = {"per_chip_hour": 3.6, "currency": "EUR", "date": date(2026, 11, 1)}

# tokens/s of TensorRT-LLM's performance overview (releases 1.0 and 1.2; batch 1: two posts of developer.nvidia.com on speculative decoding)
# times the lowest and highest public price of the chip in 2026 (H200 2.50 to 7.00, H100 1.99 to 6.88, B200 5.98 to 14)
PUBLISHED = [
    ("8B FP8, H100", 15220, 1, (1.99, 6.88), (0.04, 0.13)),
    ("70B FP8, H200", 2909, 1, (2.50, 7.00), (0.24, 0.67)),
    ("70B FP8, 2 x H100", 4205, 2, (1.99, 6.88), (0.26, 0.91)),
    ("70B NVFP4, B200", 6920, 1, (5.98, 14.0), (0.24, 0.56)),
    ("405B FP8, 8 x H200", 3330, 8, (2.50, 7.00), (1.67, 4.67)),
    ("70B FP8, H200, batch 1", 51.1, 1, (2.50, 7.00), (13.6, 38.0)),
    ("70B FP8, H200, batch 1, draft", 181.7, 1, (2.50, 7.00), (3.8, 10.7)),
    ("405B FP8, 4 x H200, batch 1", 33.5, 4, (2.50, 7.00), (83, 232)),
    ("405B FP8, 4 x H200, batch 1, draft", 120.8, 4, (2.50, 7.00), (23, 64)),
]


@pytest.mark.parametrize(("case", "tokens_per_s", "chips", "prices", "costs"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_throughput_at_public_prices(
    case: str, tokens_per_s: float, chips: int, prices: tuple[float, float], costs: tuple[float, float]
) -> None:
    for price, cost in zip(prices, costs, strict=True):
        assert cost_per_million(tokens_per_s, price, chips) == pytest.approx(cost, rel=0.02, abs=0.005)


def test_batch_one_and_saturation_with_and_without_the_draft(make_pair: Callable[..., Pair]) -> None:
    spec = make_pair(planning={"price": PRICE}, hardware={"count": 2}).spec
    cost = plan_cost(spec, speed((1, 50, 150), (8, 400, 800), (64, 2000, 1600)), 2)
    alone, saturated = cost.points
    assert (alone.load, alone.batch, saturated.load, saturated.batch) == ("batch 1", 1, "saturation", 64)
    # two chips at 3.60 an hour are 0.2 cent a second
    assert alone.plain_per_million == pytest.approx(0.002 / 50 * 1e6)
    assert alone.speculative_per_million == pytest.approx(0.002 / 150 * 1e6)
    assert saturated.plain_per_million == pytest.approx(1.0)
    assert saturated.speculative_per_million == pytest.approx(1.25)
    assert saturated.plain_tokens_per_chip_hour == 2000 * 3600 / 2
    assert (alone.draft_loses, saturated.draft_loses) == (False, True)


def test_without_a_price_there_is_no_money_but_tokens(make_pair: Callable[..., Pair]) -> None:
    spec = make_pair(planning={"engineering_cost": 1000}).spec
    cost = plan_cost(spec, speed((1, 50, 150)), 1)
    point = cost.as_dict()["points"][0]
    assert cost.as_dict()["price"] is None
    assert point["plain_per_million"] is point["speculative_per_million"] is None
    assert point["speculative_tokens_per_chip_hour"] == 150 * 3600
    assert cost.paybacks == ()


def test_without_drafts_there_is_one_column(make_pair: Callable[..., Pair]) -> None:
    spec = make_pair(planning={"price": PRICE, "engineering_cost": 10}, draft={"method": "none", "checkpoint": None}).spec
    cost = plan_cost(spec, speed((1, 50, 50)), 1)
    assert cost.points[0].speculative_per_million is cost.points[0].speedup is None
    assert not cost.points[0].draft_loses
    assert cost.paybacks == ()


def test_payback_in_hours_and_tokens(make_pair: Callable[..., Pair]) -> None:
    spec = make_pair(planning={"price": PRICE, "engineering_cost": 7200}).spec
    alone, saturated = plan_cost(spec, speed((1, 50, 150), (64, 2000, 1600)), 1).paybacks
    # at three times the speed an hour with the draft does the work of three: 2 x 3.60 saved
    assert alone.saving_per_hour == pytest.approx(7.2)
    assert alone.hours == pytest.approx(1000)
    assert alone.tokens == pytest.approx(1000 * 3600 * 150)
    # the same sum the other way: tokens times what each is cheaper
    points = plan_cost(spec, speed((1, 50, 150)), 1).points[0]
    assert points.plain_per_million is not None
    assert points.speculative_per_million is not None
    assert alone.tokens * (points.plain_per_million - points.speculative_per_million) / 1e6 == pytest.approx(7200)
    assert saturated.hours is saturated.tokens is None


@pytest.mark.parametrize(
    ("goal", "adaptive", "batch", "met"),
    [
        ({"tokens_per_s_per_user": 90}, True, 8, True),
        ({"tokens_per_s_per_user": 120}, True, 1, True),
        ({"tokens_per_s_per_user": 200}, True, 1, False),
        ({"tokens_per_s": 2000}, True, 64, True),
        ({"tokens_per_s": 2000}, False, 64, False),
        ({"tokens_per_s": 700, "tokens_per_s_per_user": 90}, True, 8, True),
        ({"tokens_per_s": 900, "tokens_per_s_per_user": 90}, True, 8, False),
    ],
)
def test_goal_is_met_at_one_batch_or_missed(
    make_pair: Callable[..., Pair], goal: dict[str, float], adaptive: bool, batch: int, met: bool
) -> None:
    """An adaptive deployment serves the better of the two rates at batch 64, another one the draft's."""
    spec = make_pair(planning={"goal": goal}, speculation={"adaptive": adaptive}).spec
    point = plan_cost(spec, speed((1, 50, 150), (8, 400, 800), (64, 2000, 1600)), 1).goal
    assert point is not None
    assert (point.batch, point.met) == (batch, met)


def test_no_goal_no_verdict(make_pair: Callable[..., Pair]) -> None:
    assert plan_cost(make_pair().spec, speed((1, 50, 150)), 1).goal is None
