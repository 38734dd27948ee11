"""The smallest hardware that meets a stated goal, found by trying every known chip."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from builder.api import Progress
from builder.hardware.chips import Chip, chips
from builder.planner.cost.goal import batch_limits, goal_in_words
from builder.planner.cost.model import cost_per_million
from builder.planner.cost.search import Evaluate, counts_of, fewest
from builder.planner.cost.words import money, rate
from builder.spec import PairSpec


@dataclass(frozen=True)
class HardwareChoice:
    """The fewest chips of one kind that meet the goal: `replicas` of one instance, each at `batch`. Rates are of all replicas together.

    `full_sequences` is how many sequences of full length the pool of one holds. `per_million` is money per 1M output tokens, for the chip
    whose price is given; for others `equal_price_per_chip_hour` is the price at which they would cost the same as that one. `provider` is
    the source of step times.
    """

    chip: str
    count: int
    replicas: int
    memory_bytes: int
    batch: int
    tokens_per_s: float
    full_sequences: int
    provider: str
    per_million: float | None = None
    equal_price_per_chip_hour: float | None = None

    @property
    def tokens_per_s_per_user(self) -> float:
        return self.tokens_per_s / self.replicas / self.batch

    @property
    def has_room(self) -> bool:
        """Whether every sequence of the batch may be as long as the limit allows."""
        return self.full_sequences >= self.batch

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "tokens_per_s_per_user": self.tokens_per_s_per_user, "has_room": self.has_room}


@dataclass(frozen=True)
class HardwareAdvice:
    """Every chip that can meet the goal, those with room first, then least memory in all first, and one sentence."""

    choices: tuple[HardwareChoice, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {"kind": "prediction", "choices": [c.as_dict() for c in self.choices], "sentence": self.sentence}


def hardware_for_goal(
    spec: PairSpec,
    evaluate: Evaluate,
    *,
    known: Mapping[str, Chip] | None = None,
    needed_bytes: int = 0,
    progress: Progress = lambda _text, _share: None,
) -> HardwareAdvice:
    """Try each chip of the pair's kind (GPU or processor) whose memory can hold `needed_bytes`, one instance on 1, 2, 4, 8 of it and
    replicas of that; the fewest chips that meet the goal are kept."""
    own, all_chips, counts = spec.hardware.chip, known or chips(), counts_of(spec)
    alike = [chip for chip in all_chips.values() if (chip.sm > 0) == (all_chips[own].sm > 0)]
    found: list[HardwareChoice] = []
    for number, chip in enumerate(alike):
        progress(f"trying chips ({chip.name})", number / len(alike))
        able = [count for count in counts if not chip.memory_bytes or chip.memory_bytes * count >= needed_bytes]
        found += _choice(spec, chip, evaluate, able)
    found.sort(key=lambda c: (not c.has_room, c.memory_bytes, c.count, c.chip != own, c.chip))
    choices = tuple(_priced(spec, found))
    return HardwareAdvice(choices, _sentence(spec, choices, len(alike), max(counts)))


def _choice(spec: PairSpec, chip: Chip, evaluate: Evaluate, counts: Sequence[int]) -> Iterator[HardwareChoice]:
    found = fewest(spec, chip.name, evaluate, counts)
    if found is not None:
        memory, in_all = chip.memory_bytes * found.chips, found.tokens_per_s_each * found.replicas
        yield HardwareChoice(chip.name, found.chips, found.replicas, memory, found.row.batch, in_all, found.full_sequences, found.provider)


def _priced(spec: PairSpec, choices: Sequence[HardwareChoice]) -> Iterator[HardwareChoice]:
    price = spec.planning.price
    own = next((c for c in choices if c.chip == spec.hardware.chip), None)
    if price is None or own is None:
        yield from choices
        return
    own_cost = cost_per_million(own.tokens_per_s, price.per_chip_hour, own.count)
    for choice in choices:
        at_one = cost_per_million(choice.tokens_per_s, 1.0, choice.count)
        yield replace(choice, per_million=own_cost) if choice is own else replace(choice, equal_price_per_chip_hour=own_cost / at_one)


def _sentence(spec: PairSpec, choices: Sequence[HardwareChoice], tried: int, most: int) -> str:
    goal = goal_in_words(spec.planning.goal)
    if not choices:
        return f"None of {tried} chips meets {goal}, with up to {most} of it to an instance."
    first, own = choices[0], next((c for c in choices if c.chip == spec.hardware.chip), None)
    beside = f"{_worth(spec, first, own)}{_own(spec, first, own, most)}"
    least = f"The least that meets {goal} is {_named(first)} ({_reached(spec, first)}){beside}."
    tight = min((c for c in choices if not c.has_room and c is not own), key=lambda c: c.memory_bytes, default=first)
    named = [choice for choice in (first, own) if choice is not None]
    if tight.memory_bytes < first.memory_bytes:
        named.append(tight)
        least += f" {_named(tight)} meets it, too, at batch {tight.batch}, but {_room(spec, tight)}."
    return f"{least} {_assumed(spec, named)}"


def _own(spec: PairSpec, first: HardwareChoice, own: HardwareChoice | None, most: int) -> str:
    if own is None:
        return f"; {spec.hardware.chip} does not meet it with up to {most} to an instance"
    if own.chip == first.chip:
        return ""
    return f"; of {own.chip} it takes {own.count}{_split(own)} ({_reached(spec, own)}){_unlike(first, own)}"


def _named(choice: HardwareChoice) -> str:
    """`4 x h200_sxm as 2 replicas`."""
    return f"{choice.count} x {choice.chip}{_split(choice)}"


def _split(choice: HardwareChoice) -> str:
    return f" as {choice.replicas} replicas" if choice.replicas > 1 else ""


def _unlike(first: HardwareChoice, own: HardwareChoice) -> str:
    """Rates of two providers differ by more than the chips do."""
    if first.provider == own.provider:
        return ""
    return f"; step times of {first.chip} are from {first.provider}, of {own.chip} from {own.provider}"


def _worth(spec: PairSpec, first: HardwareChoice, own: HardwareChoice | None) -> str:
    price, equal = spec.planning.price, first.equal_price_per_chip_hour
    if price is None or equal is None or own is None:
        return ""
    return f", cheaper per token than {own.count} x {own.chip} below {money(equal, price.currency)} per chip hour"


def _reached(spec: PairSpec, choice: HardwareChoice) -> str:
    batch = f"batch {choice.batch}" if choice.replicas == 1 else f"batch {choice.batch} each"
    raised = " and ".join(f"{field}: {choice.batch}" for field, limit in batch_limits(spec).items() if choice.batch > limit)
    parts = [f"{batch}: {rate(choice.tokens_per_s_per_user)} per user, {rate(choice.tokens_per_s)} in all"]
    return "; ".join([*parts, *([f"needs {raised}"] if raised else []), *([] if choice.has_room else [_room(spec, choice)])])


def _room(spec: PairSpec, choice: HardwareChoice) -> str:
    return f"its pool holds {choice.full_sequences} of {choice.batch} sequences at full length, {spec.limits.max_sequence_tokens} tokens"


def _assumed(spec: PairSpec, choices: Sequence[HardwareChoice]) -> str:
    workload = spec.planning.workload
    shared = ", shared evenly among replicas" if any(c.replicas > 1 for c in choices) else ""
    return f"This is for requests of {workload.input_tokens} tokens in and {workload.output_tokens} out{shared}."
