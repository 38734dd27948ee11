"""The smallest hardware for a goal, through a made-up law of speed."""

import dataclasses
from collections.abc import Callable
from datetime import date

import pytest

from builder.api import Chip
from builder.planner.cost import HardwareAdvice, hardware_for_goal
from builder.planner.cost.search import Evaluate, Instance, counts_of
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed_by_law

MakePair = Callable[..., Pair]
GIB = 2**30


def chip(name: str, memory_gib: int, capability: str = "9.0") -> Chip:
    return Chip(name, name, "hopper", capability, memory_gib * GIB, 1e12, {})


KNOWN = {c.name: c for c in (chip("small", 40), chip("middle", 80), chip("h200_sxm", 140), chip("old", 16), chip("cpu", 0, ""))}
PACES = {"small": 10, "middle": 25, "h200_sxm": 60, "old": 2, "cpu": 1}
WORKLOAD = "This is for requests of 1000 tokens in and 500 out"


def by_law(pair: Pair) -> Evaluate:
    """70 GiB must fit, every GiB left holds 1 sequence of full length and 4 typical ones. A user gets pace x chips / (1 + batch / 16)."""

    def evaluate(name: str, count: int, batch: int | None) -> Instance | None:
        room = KNOWN[name].memory_bytes * count // GIB - 70
        limit = min(batch or pair.spec.limits.max_batch_size, room * 4)
        return Instance(speed_by_law(lambda b: PACES[name] * count * b / (1 + b / 16), limit), room) if room > 0 else None

    return evaluate


def advice(pair: Pair, evaluate: Evaluate | None = None) -> HardwareAdvice:
    return hardware_for_goal(pair.spec, evaluate or by_law(pair), known=KNOWN)


def test_least_memory_in_all_comes_first_and_each_chip_with_its_fewest(make_pair: MakePair) -> None:
    found = advice(make_pair(planning={"goal": {"tokens_per_s_per_user": 40}}))
    assert [(c.chip, c.count, c.replicas, c.batch) for c in found.choices] == [
        ("h200_sxm", 1, 1, 8),
        ("middle", 2, 1, 4),
        ("small", 8, 1, 8),
    ]
    assert found.sentence == (
        f"The least that meets 40 tokens/s per user is 1 x h200_sxm (batch 8: 40 tokens/s per user, 320 tokens/s in all). {WORKLOAD}."
    )


def test_replicas_and_larger_batches_are_tried_and_what_they_need_is_said(make_pair: MakePair) -> None:
    """At batch 8 an h200_sxm makes 320, so it takes two, or one at batch 27; two split `middle` make 600 at batch 48, three whole ones
    would, too. Three replicas of two `small` make 200 each at batch 27, for which there is no room at full length."""
    found = advice(make_pair(planning={"goal": {"tokens_per_s": 600}}))
    assert [(c.chip, c.count, c.replicas, c.batch, c.has_room) for c in found.choices] == [
        ("h200_sxm", 1, 1, 27, True),
        ("middle", 2, 1, 48, True),
        ("old", 24, 3, 58, True),
        ("small", 6, 3, 27, False),
    ]
    assert found.choices[2].tokens_per_s == pytest.approx(3 * 16 * 58 / (1 + 58 / 16))
    assert found.choices[2].tokens_per_s_per_user == pytest.approx(16 / (1 + 58 / 16))
    assert found.sentence == (
        "The least that meets 600 tokens/s in all is 1 x h200_sxm (batch 27: 22.3 tokens/s per user, 603 tokens/s in all; needs "
        f"limits.max_batch_size: 27). {WORKLOAD}."
    )


def test_limits_of_the_pair_file_are_kept_where_they_do_as_well(make_pair: MakePair) -> None:
    """A goal per user needs no larger batch, and one in all no more than its users."""
    pair, tried = make_pair(planning={"goal": {"tokens_per_s_per_user": 20}}), []

    def note(name: str, count: int, batch: int | None) -> Instance | None:
        tried.append(batch)
        return by_law(pair)(name, count, batch)

    assert max(c.batch for c in advice(pair, note).choices) == 8
    assert set(tried) == {None}
    both = make_pair(planning={"goal": {"tokens_per_s_per_user": 20, "tokens_per_s": 100}})
    assert advice(both).choices == advice(both, lambda name, count, batch: by_law(both)(name, count, None)).choices
    both = make_pair(planning={"goal": {"tokens_per_s_per_user": 20, "tokens_per_s": 600}}, serve={"max_concurrent_requests": 16})
    assert "needs limits.max_batch_size: 27 and serve.max_concurrent_requests: 27" in advice(both).sentence


def test_own_chip_and_the_price_below_which_the_smallest_is_cheaper(make_pair: MakePair) -> None:
    goal, price = {"tokens_per_s_per_user": 20, "tokens_per_s": 100}, {"per_chip_hour": 6.0, "date": date(2026, 11, 1)}
    found = advice(make_pair(planning={"goal": goal, "price": price}, hardware={"chip": "middle"}))
    first, own = found.choices[:2]
    assert own.per_million == pytest.approx(2 * 6.0 / (160 * 3600) * 1e6)
    assert own.equal_price_per_chip_hour is first.per_million is None
    assert first.equal_price_per_chip_hour == pytest.approx(6.0 * 320 / 80)
    assert found.sentence == (
        "The least that meets 20 tokens/s per user and 100 tokens/s in all is 1 x h200_sxm (batch 8: 40 tokens/s per user, 320 tokens/s in "
        "all), cheaper per token than 2 x middle below 24.00 USD per chip hour; of middle it takes 2 as 2 replicas (batch 4 each: "
        f"20 tokens/s per user, 160 tokens/s in all). {WORKLOAD}, shared evenly among replicas."
    )


def test_smaller_hardware_without_room_at_full_length_comes_after(make_pair: MakePair) -> None:
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 21}})

    def tight(name: str, count: int, batch: int | None) -> Instance | None:
        instance = by_law(pair)(name, count, batch)
        return dataclasses.replace(instance, full_sequences=1) if instance and name == "middle" else instance

    found = advice(pair, tight)
    assert found.choices[0].chip == "h200_sxm"
    assert found.sentence.endswith(
        f" in all). 1 x middle meets it, too, at batch 3, but its pool holds 1 of 3 sequences at full length, 2048 tokens. {WORKLOAD}."
    )
    alone = advice(pair, lambda name, count, batch: tight(name, count, batch) if name == "middle" else None)
    assert "63.2 tokens/s in all; its pool holds 1 of 3 sequences at full length, 2048 tokens); h200_sxm does not" in alone.sentence


def test_goal_that_own_chip_misses(make_pair: MakePair) -> None:
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 40}})
    found = advice(pair, lambda name, count, batch: None if name == "h200_sxm" else by_law(pair)(name, count, batch))
    assert found.choices[0].chip == "middle"
    assert "; h200_sxm does not meet it with up to 8 to an instance. " in found.sentence


def test_of_equals_the_own_chip_comes_first(make_pair: MakePair) -> None:
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 40}})
    twin = {**KNOWN, "a_twin": chip("a_twin", 140)}
    law = by_law(pair)
    found = hardware_for_goal(pair.spec, lambda name, *rest: law("h200_sxm" if name == "a_twin" else name, *rest), known=twin)
    assert [c.chip for c in found.choices[:2]] == ["h200_sxm", "a_twin"]


def test_step_times_of_two_sources_are_said(make_pair: MakePair) -> None:
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 40}}, hardware={"chip": "middle"})

    def mixed(name: str, count: int, batch: int | None) -> Instance | None:
        instance = by_law(pair)(name, count, batch)
        measured = instance and dataclasses.replace(instance.speed, provider="measured")
        return dataclasses.replace(instance, speed=measured) if instance and measured and name == "middle" else instance

    found = advice(pair, mixed)
    assert found.choices[0].provider == "roofline"
    assert "; step times of h200_sxm are from roofline, of middle from measured. " in found.sentence


def test_goal_that_nothing_meets(make_pair: MakePair) -> None:
    found = advice(make_pair(planning={"goal": {"tokens_per_s_per_user": 1000}}))
    assert found.choices == ()
    assert found.sentence == "None of 4 chips meets 1,000 tokens/s per user, with up to 8 of it to an instance."
    assert found.as_dict()["choices"] == []


def test_what_cannot_hold_the_weights_or_cannot_be_better_is_not_tried(make_pair: MakePair) -> None:
    tried: list[tuple[str, int]] = []
    told: list[str] = []
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 1}})

    def note(name: str, count: int, batch: int | None) -> Instance | None:
        tried.append((name, count))
        return by_law(pair)(name, count, batch)

    hardware_for_goal(pair.spec, note, known=KNOWN, needed_bytes=70 * GIB, progress=lambda text, share: told.append(text))
    assert tried == [("small", 2), ("middle", 1), ("h200_sxm", 1), ("old", 8)], "no processor either: the pair is on GPUs"
    assert told[0] == "trying chips (small)"


def test_chips_of_an_instance_keep_the_pipeline_and_the_own_count(make_pair: MakePair) -> None:
    assert counts_of(make_pair().spec) == (1, 2, 4, 8)
    assert counts_of(make_pair(hardware={"count": 6}).spec) == (1, 2, 4, 6, 8)
    assert counts_of(make_pair(hardware={"count": 3}, target={"pipeline_parallel": 3}).spec) == (3, 6, 12, 24)
