"""The smallest hardware for a goal, through a made-up law of speed."""

import dataclasses
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from builder.api import Chip
from builder.planner.cost import hardware_for_goal
from builder.planner.speed import SpeedPlan
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed

GIB = 2**30


def chip(name: str, memory_gib: int, capability: str = "9.0") -> Chip:
    return Chip(name, name, "hopper", capability, memory_gib * GIB, 1e12, {})


KNOWN = {c.name: c for c in (chip("small", 40), chip("middle", 80), chip("h200_sxm", 140), chip("old", 16), chip("cpu", 0, ""))}
RATES = {"small": 10, "middle": 25, "h200_sxm": 60, "old": 2, "cpu": 1}


def evaluate(name: str, count: int) -> tuple[bool, SpeedPlan | None]:
    """70 GiB must fit; a user gets the chip's rate times the count."""
    if KNOWN[name].memory_bytes * count < 70 * GIB:
        return False, None
    rate = RATES[name] * count
    return True, speed((1, rate / 2, rate), (16, rate * 4, rate * 8))


def advice(pair: Pair) -> Any:
    return hardware_for_goal(pair.spec, evaluate, known=KNOWN)


def test_least_memory_in_all_comes_first_and_each_chip_with_its_fewest(make_pair: Callable[..., Pair]) -> None:
    found = advice(make_pair(planning={"goal": {"tokens_per_s_per_user": 40}}))
    assert [(c.chip, c.count) for c in found.choices] == [("h200_sxm", 1), ("middle", 2), ("small", 4)]
    assert found.sentence == (
        "The least that meets 40 tokens/s per user is 1 x h200_sxm (batch 1: 60 tokens/s per user, 60 tokens/s in all)."
    )


def test_own_chip_and_the_price_below_which_the_smallest_is_cheaper(make_pair: Callable[..., Pair]) -> None:
    planning = {"goal": {"tokens_per_s": 200}, "price": {"per_chip_hour": 6.0, "date": date(2026, 11, 1)}}
    found = advice(make_pair(planning=planning))
    assert [(c.chip, c.count) for c in found.choices] == [("middle", 1), ("h200_sxm", 1), ("small", 4)]
    middle, own = found.choices[:2]
    assert own.per_million == pytest.approx(6.0 / (480 * 3600) * 1e6)
    assert own.equal_price_per_chip_hour is None
    assert middle.per_million is None
    assert middle.equal_price_per_chip_hour == pytest.approx(6.0 * 200 / 480)
    assert found.sentence == (
        "The least that meets 200 tokens/s in all is 1 x middle (batch 16: 12.5 tokens/s per user, 200 tokens/s in all), cheaper per token "
        "than 1 x h200_sxm below 2.50 USD per chip hour; of h200_sxm it takes 1."
    )


def test_goal_that_own_chip_misses(make_pair: Callable[..., Pair]) -> None:
    slow = speed((1, 1, 1))
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 40}})
    found = hardware_for_goal(pair.spec, lambda n, c: (True, slow) if n == "h200_sxm" else evaluate(n, c), known=KNOWN)
    assert found.choices[0].chip == "middle"
    assert found.sentence.endswith("; h200_sxm does not meet it with up to 8.")


def test_step_times_of_two_sources_are_said(make_pair: Callable[..., Pair]) -> None:
    def mixed(name: str, count: int) -> tuple[bool, SpeedPlan | None]:
        fits, rates = evaluate(name, count)
        return fits, dataclasses.replace(rates, provider="measured") if rates and name == "h200_sxm" else rates

    found = hardware_for_goal(make_pair(planning={"goal": {"tokens_per_s": 200}}).spec, mixed, known=KNOWN)
    assert found.choices[0].provider == "roofline"
    assert found.sentence.endswith("of h200_sxm it takes 1; step times of middle are from roofline, of h200_sxm from measured.")


def test_goal_that_nothing_meets(make_pair: Callable[..., Pair]) -> None:
    found = advice(make_pair(planning={"goal": {"tokens_per_s_per_user": 1000}}))
    assert found.choices == ()
    assert found.sentence == "None of 4 chips meets 1,000 tokens/s per user, with up to 8 of it."
    assert found.as_dict()["choices"] == []


def test_processors_are_not_tried_for_a_pair_on_gpus(make_pair: Callable[..., Pair]) -> None:
    tried: list[str] = []

    def note(name: str, count: int) -> tuple[bool, SpeedPlan | None]:
        tried.append(name)
        return evaluate(name, count)

    hardware_for_goal(make_pair(planning={"goal": {"tokens_per_s": 1}}).spec, note, known=KNOWN)
    assert set(tried) == {"small", "middle", "h200_sxm", "old"}
    assert tried.count("middle") == 1, "the first count that meets the goal ends the search"
