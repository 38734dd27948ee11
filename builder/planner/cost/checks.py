"""What the cost plan has to say: old prices, a draft that loses money, a goal that is missed."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from builder.errors import Finding, Severity
from builder.planner.cost.goal_missed import goal_missed
from builder.planner.cost.model import CostPlan
from builder.planner.cost.words import money
from builder.spec import PairSpec

PRICE_IS_OLD_AFTER = timedelta(days=90)


def check_cost(spec: PairSpec, cost: CostPlan | None, *, file: Path = Path("CONFIG"), today: date | None = None) -> Iterator[Finding]:
    """Findings of the price, and of the cost when speed could be worked out. `file` is the pair file, for what can be typed; `today` is
    the clock's day unless given."""
    yield from _price(spec, today or date.today())
    if cost is None:
        return
    yield from _draft(cost)
    yield from _paybacks(spec, cost)
    yield from goal_missed(spec, cost, file)


def _price(spec: PairSpec, today: date) -> Iterator[Finding]:
    price, field = spec.planning.price, "planning.price.date"
    if price is None:
        if spec.planning.engineering_cost is not None:
            yield _no_price()
        return
    amount = f"the price of {money(price.per_chip_hour, price.currency)} per chip hour"
    if price.date > today:
        message = f"{amount} is dated {price.date}, which is after today, {today}; a price is one that was asked, not one that is hoped for"
        fix = "write the day on which the price was read"
        yield Finding("COST-PRICE-FUTURE", "error", message, field, str(price.date), f"a day up to {today}", fix)
    elif today - price.date > PRICE_IS_OLD_AFTER:
        days, limit = (today - price.date).days, PRICE_IS_OLD_AFTER.days
        message = f"{amount} is of {price.date}, {days} days ago; after {limit} days every cost made from it is doubtful"
        fix = "look the price up again and write it with its day"
        yield Finding("COST-PRICE-OLD", "warning", message, field, f"{days} days", f"at most {limit} days", fix)


def _no_price() -> Finding:
    message = "an engineering cost is given but no price per chip hour, so when the draft pays it back cannot be said"
    fix = "add planning.price: {per_chip_hour: ..., date: ...}"
    return Finding("COST-NO-PRICE", "warning", message, "planning.engineering_cost", "no planning.price", "planning.price", fix)


def _draft(cost: CostPlan) -> Iterator[Finding]:
    """Only in money: that drafting is slower there, the speed plan says."""
    alone, saturated = cost.points
    dear, cheap = saturated.speculative_per_million, saturated.plain_per_million
    if not saturated.draft_loses or dear is None or cheap is None:
        return
    others = "at batch 1 it loses it too" if alone.draft_loses else f"at batch 1 it saves it ({alone.speedup:.2f}x)"
    message = (
        f"at saturation (batch {saturated.batch}) the draft loses money: 1M output tokens cost {money(dear, cost.currency)} with it, "
        f"{money(cheap, cost.currency)} without; {others}"
    )
    if cost.adaptive:
        message += "; speculation.adaptive stops drafting there, but the draft keeps its memory"
    severity: Severity = "info" if cost.adaptive else "warning"
    fix = "set draft.method: none" if alone.draft_loses else _way_out_of_loss(cost)
    yield Finding("COST-DRAFT-LOSES", severity, message, "draft.method", f"{saturated.speedup:.2f}x", "at least 1.00x", fix)


def _way_out_of_loss(cost: CostPlan) -> str:
    batch = "limits.max_batch_size to a batch at which the draft wins"
    if cost.adaptive:
        return f"set draft.method: none where throughput is all that counts, or {batch}"
    return f"set speculation.adaptive: true, or {batch}" if cost.lane_adapts else f"set {batch}, or draft.method: none"


def _paybacks(spec: PairSpec, cost: CostPlan) -> Iterator[Finding]:
    if not cost.paybacks or any(p.hours is not None for p in cost.paybacks):
        return
    message = (
        f"the engineering cost of {money(cost.paybacks[0].engineering_cost, cost.currency)} is never paid back: "
        "the draft saves nothing at batch 1 nor at saturation"
    )
    fix = "set draft.method: none, or take a draft that the target agrees with more often"
    yield Finding("COST-NO-PAYBACK", "warning", message, "planning.engineering_cost", "no saving", "a saving at some load", fix)
