"""Values of the cost plan. Money is in the currency of `planning.price`; without a price there is none, only tokens per chip hour."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from builder.spec.model import PriceSpec

SECONDS_PER_HOUR = 3600
MILLION = 1_000_000


def cost_per_million(tokens_per_s: float, price_per_chip_hour: float, chip_count: int) -> float:
    """What a million output tokens cost when `chip_count` chips make `tokens_per_s` together."""
    return price_per_chip_hour * chip_count / (tokens_per_s * SECONDS_PER_HOUR) * MILLION


@dataclass(frozen=True)
class CostPoint:
    """Tokens and money at one load, without and with the draft (None where nothing is drafted)."""

    load: str
    batch: int
    plain_tokens_per_s: float
    speculative_tokens_per_s: float | None
    chip_count: int
    price_per_chip_hour: float | None

    @property
    def plain_per_million(self) -> float | None:
        return self._per_million(self.plain_tokens_per_s)

    @property
    def speculative_per_million(self) -> float | None:
        return self._per_million(self.speculative_tokens_per_s)

    @property
    def plain_tokens_per_chip_hour(self) -> float:
        return self.plain_tokens_per_s * SECONDS_PER_HOUR / self.chip_count

    @property
    def speculative_tokens_per_chip_hour(self) -> float | None:
        rate = self.speculative_tokens_per_s
        return None if rate is None else rate * SECONDS_PER_HOUR / self.chip_count

    @property
    def speedup(self) -> float | None:
        return None if self.speculative_tokens_per_s is None else self.speculative_tokens_per_s / self.plain_tokens_per_s

    @property
    def draft_loses(self) -> bool:
        return self.speedup is not None and self.speedup < 1

    def as_dict(self) -> dict[str, Any]:
        speeds = ("plain_tokens_per_s", "speculative_tokens_per_s", "speedup")
        tokens = ("plain_tokens_per_chip_hour", "speculative_tokens_per_chip_hour")
        money = ("plain_per_million", "speculative_per_million")
        return {name: getattr(self, name) for name in ("load", "batch", *speeds, *tokens, *money)}

    def _per_million(self, tokens_per_s: float | None) -> float | None:
        if tokens_per_s is None or self.price_per_chip_hour is None:
            return None
        return cost_per_million(tokens_per_s, self.price_per_chip_hour, self.chip_count)


@dataclass(frozen=True)
class Payback:
    """How long the deployment must run at one load until the draft has saved `engineering_cost`; None means never."""

    load: str
    engineering_cost: float
    saving_per_hour: float
    hours: float | None
    tokens: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class GoalPoint:
    """The batch at which the deployment comes closest to `planning.goal`; `reach` is the share of the goal there, 1 or more is met.

    `replicas` is how many such deployments side by side meet it; None where none gives a user enough.
    """

    reach: float
    batch: int
    tokens_per_s: float
    replicas: int | None = None

    @property
    def met(self) -> bool:
        return self.reach >= 1

    @property
    def tokens_per_s_per_user(self) -> float:
        return self.tokens_per_s / self.batch

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met, "tokens_per_s_per_user": self.tokens_per_s_per_user}


@dataclass(frozen=True)
class CostPlan:
    """What the deployment's tokens cost. `points` are batch 1 and saturation; `goal` is None where no goal is stated.

    `adaptive` says whether the deployment stops drafting where that loses, `lane_adapts` whether its lane could.
    """

    chip_count: int
    price: PriceSpec | None
    points: tuple[CostPoint, ...]
    paybacks: tuple[Payback, ...] = ()
    goal: GoalPoint | None = None
    adaptive: bool = True
    lane_adapts: bool = True

    @property
    def currency(self) -> str:
        return self.price.currency if self.price else ""

    def as_dict(self) -> Mapping[str, Any]:
        return {
            "kind": "prediction",
            "chip_count": self.chip_count,
            "price": self.price.model_dump(mode="json") if self.price else None,
            "points": [p.as_dict() for p in self.points],
            "paybacks": [p.as_dict() for p in self.paybacks],
            "goal": self.goal.as_dict() if self.goal else None,
        }
