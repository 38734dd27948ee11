"""Cost of tokens from predicted speed."""

from collections.abc import Iterator

from builder.planner.cost.goal import goal_is_stated, goal_point
from builder.planner.cost.model import CostPlan, CostPoint, Payback
from builder.planner.speed import BatchRow, SpeedPlan
from builder.spec import PairSpec


def plan_cost(spec: PairSpec, speed: SpeedPlan, chip_count: int) -> CostPlan:
    """Tokens per chip hour, and money where `planning.price` is given, at batch 1 and at saturation."""
    points = (_point(spec, "batch 1", speed.rows[0], chip_count), _point(spec, "saturation", speed.saturation, chip_count))
    goal = goal_point(spec, speed) if goal_is_stated(spec.planning.goal) else None
    adaptive = spec.speculation.adaptive and speed.lane_adapts
    return CostPlan(chip_count, spec.planning.price, points, tuple(_paybacks(spec, points)), goal, adaptive, speed.lane_adapts)


def _point(spec: PairSpec, load: str, row: BatchRow, chip_count: int) -> CostPoint:
    price = spec.planning.price.per_chip_hour if spec.planning.price else None
    speculative = row.speculative_tokens_per_s if spec.draft.method != "none" else None
    return CostPoint(load, row.batch, row.plain_tokens_per_s, speculative, chip_count, price)


def _paybacks(spec: PairSpec, points: tuple[CostPoint, ...]) -> Iterator[Payback]:
    cost = spec.planning.engineering_cost
    if cost is None or spec.planning.price is None:
        return
    for point in points:
        if point.speculative_tokens_per_s is not None:
            yield _payback(point, cost)


def _payback(point: CostPoint, engineering_cost: float) -> Payback:
    """An hour with the draft makes tokens that would cost `speedup` hours without it, so it saves (speedup - 1) hours of all chips."""
    assert point.speedup is not None
    assert point.price_per_chip_hour is not None
    assert point.speculative_tokens_per_s is not None
    saving = point.price_per_chip_hour * point.chip_count * (point.speedup - 1)
    if saving <= 0:
        return Payback(point.load, engineering_cost, saving, None, None)
    hours = engineering_cost / saving
    return Payback(point.load, engineering_cost, saving, hours, hours * 3600 * point.speculative_tokens_per_s)
