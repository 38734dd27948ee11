"""The smallest hardware that meets a stated goal, found by trying every known chip."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from builder.hardware.chips import Chip, chips
from builder.planner.cost.goal import goal_in_words, goal_point
from builder.planner.cost.model import cost_per_million
from builder.planner.cost.words import money, rate
from builder.planner.speed import SpeedPlan
from builder.spec import PairSpec

COUNTS = (1, 2, 4, 8)

Evaluate = Callable[[str, int], tuple[bool, SpeedPlan | None]]
"""Chip name and count to whether the pair is accepted and fits there, and its speed."""


@dataclass(frozen=True)
class HardwareChoice:
    """The fewest chips of one kind that meet the goal. `per_million` is money per 1M output tokens, for the chip whose price is given;
    for others `equal_price_per_chip_hour` is the price at which they would cost the same as that one.
    `provider` is the source of step times."""

    chip: str
    count: int
    memory_bytes: int
    batch: int
    tokens_per_s: float
    provider: str
    per_million: float | None = None
    equal_price_per_chip_hour: float | None = None

    @property
    def tokens_per_s_per_user(self) -> float:
        return self.tokens_per_s / self.batch

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "tokens_per_s_per_user": self.tokens_per_s_per_user}


@dataclass(frozen=True)
class HardwareAdvice:
    """Every chip that can meet the goal, least memory in all first, and one sentence."""

    choices: tuple[HardwareChoice, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "prediction", "choices": [c.as_dict() for c in self.choices], "sentence": self.sentence}


def hardware_for_goal(
    spec: PairSpec, evaluate: Evaluate, *, known: Mapping[str, Chip] | None = None, counts: Sequence[int] = COUNTS
) -> HardwareAdvice:
    """Try each chip of the pair's kind (GPU or processor) with 1, 2, 4, 8 of it; the first count that meets the goal is kept."""
    own, all_chips = spec.hardware.chip, known or chips()
    alike = [chip for chip in all_chips.values() if (chip.sm > 0) == (all_chips[own].sm > 0)]
    found = sorted((c for chip in alike for c in _fewest(spec, chip, evaluate, counts)), key=lambda c: (c.memory_bytes, c.count, c.chip))
    choices = tuple(_priced(spec, found))
    return HardwareAdvice(choices, _sentence(spec, choices, len(alike), max(counts)))


def _fewest(spec: PairSpec, chip: Chip, evaluate: Evaluate, counts: Sequence[int]) -> Iterator[HardwareChoice]:
    for count in counts:
        fits, speed = evaluate(chip.name, count)
        if fits and speed is not None:
            point = goal_point(spec, speed)
            if point.met:
                yield HardwareChoice(chip.name, count, chip.memory_bytes * count, point.batch, point.tokens_per_s, speed.provider)
                return


def _priced(spec: PairSpec, choices: Sequence[HardwareChoice]) -> Iterator[HardwareChoice]:
    price = spec.planning.price
    own = next((c for c in choices if c.chip == spec.hardware.chip), None)
    if price is None or own is None:
        yield from choices
        return
    own_cost = cost_per_million(own.tokens_per_s, price.per_chip_hour, own.count)
    for choice in choices:
        at_one = cost_per_million(choice.tokens_per_s, 1.0, choice.count)
        money_values = {"per_million": own_cost} if choice is own else {"equal_price_per_chip_hour": own_cost / at_one}
        yield HardwareChoice(**{**asdict(choice), **money_values})


def _sentence(spec: PairSpec, choices: Sequence[HardwareChoice], tried: int, most: int) -> str:
    goal = goal_in_words(spec.planning.goal)
    if not choices:
        return f"None of {tried} chips meets {goal}, with up to {most} of it."
    first = choices[0]
    smallest = f"The least that meets {goal} is {first.count} x {first.chip} ({_reached(first)})"
    own = next((c for c in choices if c.chip == spec.hardware.chip), None)
    if own is None:
        return f"{smallest}; {spec.hardware.chip} does not meet it with up to {most}."
    if own is first:
        return f"{smallest}."
    return f"{smallest}{_worth(spec, first, own)}; of {own.chip} it takes {own.count}{_unlike(first, own)}."


def _unlike(first: HardwareChoice, own: HardwareChoice) -> str:
    """Rates of two providers differ by more than the chips do."""
    if first.provider == own.provider:
        return ""
    return f"; step times of {first.chip} are from {first.provider}, of {own.chip} from {own.provider}"


def _worth(spec: PairSpec, first: HardwareChoice, own: HardwareChoice) -> str:
    price, equal = spec.planning.price, first.equal_price_per_chip_hour
    if price is None or equal is None:
        return ""
    return f", cheaper per token than {own.count} x {own.chip} below {money(equal, price.currency)} per chip hour"


def _reached(choice: HardwareChoice) -> str:
    return f"batch {choice.batch}: {rate(choice.tokens_per_s_per_user)} per user, {rate(choice.tokens_per_s)} in all"
