"""Findings of the cost plan, whole sentences."""

import dataclasses
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from builder.errors import Finding
from builder.planner.cost import check_cost, plan_cost
from builder.planner.speed import SpeedPlan
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed

TODAY = date(2026, 11, 30)
FAST = speed((1, 50, 150), (64, 2000, 2600))
LOSING = speed((1, 50, 150), (64, 2000, 1500))
LOST = speed((1, 50, 40), (64, 2000, 1500))


def findings(pair: Pair, rates: SpeedPlan = FAST) -> list[Finding]:
    return list(check_cost(pair.spec, plan_cost(pair.spec, rates, pair.spec.hardware.count), today=TODAY))


def price(day: date) -> dict[str, Any]:
    return {"price": {"per_chip_hour": 3.6, "date": day}}


def test_price_of_ninety_days_is_taken_and_of_ninety_one_doubted(make_pair: Callable[..., Pair]) -> None:
    assert findings(make_pair(planning=price(date(2026, 9, 1)))) == []
    (finding,) = findings(make_pair(planning=price(date(2026, 8, 31))))
    assert (finding.code, finding.severity, finding.field) == ("COST-PRICE-OLD", "warning", "planning.price.date")
    assert finding.message == (
        "the price of 3.60 USD per chip hour is of 2026-08-31, 91 days ago; after 90 days every cost made from it is doubtful"
    )


def test_price_of_today_is_taken_and_of_tomorrow_refused(make_pair: Callable[..., Pair]) -> None:
    assert findings(make_pair(planning=price(TODAY))) == []
    (finding,) = findings(make_pair(planning=price(date(2026, 12, 1))))
    assert (finding.code, finding.severity, finding.field) == ("COST-PRICE-FUTURE", "error", "planning.price.date")
    assert finding.message == (
        "the price of 3.60 USD per chip hour is dated 2026-12-01, which is after today, 2026-11-30; "
        "a price is one that was asked, not one that is hoped for"
    )


def test_price_is_judged_also_where_speed_is_not_known(make_pair: Callable[..., Pair]) -> None:
    pair = make_pair(planning=price(date(2027, 1, 1)))
    assert [f.code for f in check_cost(pair.spec, None, today=TODAY)] == ["COST-PRICE-FUTURE"]


def test_engineering_cost_without_a_price(make_pair: Callable[..., Pair]) -> None:
    (finding,) = findings(make_pair(planning={"engineering_cost": 5000}))
    assert (finding.code, finding.severity) == ("COST-NO-PRICE", "warning")
    assert finding.message == "an engineering cost is given but no price per chip hour, so when the draft pays it back cannot be said"


def test_draft_that_loses_at_saturation(make_pair: Callable[..., Pair]) -> None:
    (finding,) = findings(make_pair(planning=price(TODAY), speculation={"adaptive": False}), LOSING)
    assert (finding.code, finding.severity, finding.field) == ("COST-DRAFT-LOSES", "warning", "draft.method")
    assert finding.message == (
        "at saturation (batch 64) the draft loses money: 1M output tokens cost 0.667 USD with it, 0.5 USD without; "
        "at batch 1 it saves it (3.00x)"
    )
    assert finding.fix == "set speculation.adaptive: true, or limits.max_batch_size to a batch at which the draft wins"


def test_adaptive_drafts_lose_only_their_memory(make_pair: Callable[..., Pair]) -> None:
    (finding,) = findings(make_pair(planning=price(TODAY)), LOSING)
    assert finding.severity == "info"
    assert finding.message.endswith("(3.00x); speculation.adaptive stops drafting there, but the draft keeps its memory")


def test_a_lane_that_cannot_adapt_is_not_told_to(make_pair: Callable[..., Pair]) -> None:
    (finding,) = findings(make_pair(planning=price(TODAY)), dataclasses.replace(LOSING, lane_adapts=False))
    assert finding.severity == "warning"
    assert finding.message.endswith("at batch 1 it saves it (3.00x)")
    assert finding.fix == "set limits.max_batch_size to a batch at which the draft wins, or draft.method: none"


def test_draft_that_loses_everywhere(make_pair: Callable[..., Pair]) -> None:
    (finding,) = findings(make_pair(planning=price(TODAY), speculation={"adaptive": False}), LOST)
    assert finding.message.endswith(" without; at batch 1 it loses it too")
    assert finding.fix == "set draft.method: none"


@pytest.mark.parametrize("rates", [LOSING, LOST])
def test_without_a_price_no_money_is_lost(make_pair: Callable[..., Pair], rates: SpeedPlan) -> None:
    assert findings(make_pair(), rates) == []


def test_engineering_cost_that_nothing_pays_back(make_pair: Callable[..., Pair]) -> None:
    planning = {**price(TODAY), "engineering_cost": 5000}
    assert [f.code for f in findings(make_pair(planning=planning), LOSING)] == ["COST-DRAFT-LOSES"]
    finding = findings(make_pair(planning=planning), LOST)[-1]
    assert (finding.code, finding.severity) == ("COST-NO-PAYBACK", "warning")
    assert finding.message == "the engineering cost of 5,000 USD is never paid back: the draft saves nothing at batch 1 nor at saturation"


def test_goal_that_is_missed(make_pair: Callable[..., Pair]) -> None:
    assert findings(make_pair(planning={"goal": {"tokens_per_s": 2600}})) == []
    (finding,) = findings(make_pair(planning={"goal": {"tokens_per_s": 3000, "tokens_per_s_per_user": 30}}))
    assert (finding.code, finding.severity, finding.field) == ("COST-GOAL-MISSED", "warning", "planning.goal")
    assert finding.message == (
        "the goal is 30 tokens/s per user and 3,000 tokens/s in all, and the nearest that 1 x h200_sxm comes is 40.6 tokens/s per user "
        "and 2,600 tokens/s in all at batch 64, the largest batch that serve.max_concurrent_requests allows"
    )


@pytest.mark.parametrize("rates", [FAST, LOSING, LOST])
def test_without_drafts_nothing_is_said_of_them(make_pair: Callable[..., Pair], rates: SpeedPlan) -> None:
    assert findings(make_pair(draft={"method": "none", "checkpoint": None}, planning=price(TODAY)), rates) == []
