"""Batches between the plan's powers of two, by a law whose answers are known."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from builder.planner.cost import check_cost, plan_cost
from builder.planner.cost.goal import goal_row, most_for_users, smallest_for_users
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed, speed_by_law

MakePair = Callable[..., Pair]


def rate(batch: int) -> float:
    """A step takes 1 s and 0.01 s for each of the batch; 100 tokens a step for each."""
    return 100 * batch / (1 + 0.01 * batch)


@pytest.mark.parametrize(
    ("goal", "batch", "met"),
    [
        ({"tokens_per_s_per_user": 89}, 12, True),  # 100 / 1.12 is 89.3, 100 / 1.13 is 88.5
        ({"tokens_per_s_per_user": 89, "tokens_per_s": 1070}, 12, True),  # 12 x 89.3 is 1071
        ({"tokens_per_s_per_user": 89, "tokens_per_s": 1080}, 13, False),  # 0.99 of both
        ({"tokens_per_s_per_user": 80, "tokens_per_s": 4000}, 33, False),  # 75.2 and 2481: 0.94 and 0.62; the border is at 49
        ({"tokens_per_s": 2400}, 33, True),
    ],
)
def test_the_batch_between_powers_of_two_is_found(make_pair: MakePair, goal: dict[str, float], batch: int, met: bool) -> None:
    spec = make_pair(planning={"goal": goal}, limits={"max_batch_size": 33}).spec
    point = plan_cost(spec, speed_by_law(rate, 33), 1).goal
    assert point is not None
    assert (point.batch, point.met) == (batch, met)


def test_the_nearest_batch_is_where_both_shares_are_alike(make_pair: MakePair) -> None:
    """User at batch b: (100 / (1 + b / 100)) / 80, all: 100 b / (1 + b / 100) / 4000; alike at b = 50."""
    spec = make_pair(planning={"goal": {"tokens_per_s_per_user": 80, "tokens_per_s": 4000}}).spec
    assert goal_row(spec, speed_by_law(rate, 64)).batch == 50


def test_most_and_fewest_users_with_enough(make_pair: MakePair) -> None:
    spec = make_pair(planning={"goal": {"tokens_per_s_per_user": 80, "tokens_per_s": 1000}}).spec
    most, fewest = most_for_users(spec, speed_by_law(rate, 64)), smallest_for_users(spec, speed_by_law(rate, 64), 1000)
    assert most is not None
    assert fewest is not None
    assert (most.batch, fewest.batch) == (25, 12), "100 / 1.25 is 80; 12 make 1071 and 11 make 991"
    assert smallest_for_users(spec, speed_by_law(rate, 64), 2500) is None, "27 users would get 79 each"


def test_without_a_way_to_ask_rows_alone_are_compared(make_pair: MakePair) -> None:
    spec = make_pair(planning={"goal": {"tokens_per_s_per_user": 89}}).spec
    assert goal_row(spec, speed((8, rate(8), rate(8)), (16, rate(16), rate(16)))).batch == 8


def test_where_the_provider_has_no_figures_the_search_ends(make_pair: MakePair) -> None:
    spec = make_pair(planning={"goal": {"tokens_per_s_per_user": 89}}).spec
    assert goal_row(spec, dataclasses.replace(speed_by_law(rate, 64), row_at=lambda _batch: None)).batch == 8


def missed(pair: Pair, limit: int) -> Any:
    cost = plan_cost(pair.spec, speed_by_law(rate, limit), 1)
    (finding,) = check_cost(pair.spec, cost, file=pair.shown)
    assert finding.code == "COST-GOAL-MISSED"
    return finding


@pytest.mark.parametrize(
    ("limits", "concurrent", "ending"),
    [
        (16, 64, "the largest batch that limits.max_batch_size allows"),
        (64, 16, "the largest batch that serve.max_concurrent_requests allows"),
        (16, 16, "the largest batch that limits.max_batch_size and serve.max_concurrent_requests allow"),
        (64, 64, "all that the KV pool holds"),
    ],
)
def test_what_limits_the_batch_is_named(make_pair: MakePair, limits: int, concurrent: int, ending: str) -> None:
    sections = {"limits": {"max_batch_size": limits}, "serve": {"max_concurrent_requests": concurrent}}
    finding = missed(make_pair(planning={"goal": {"tokens_per_s": 4000}}, **sections), 16)
    assert finding.message.endswith(f" comes is 86.2 tokens/s per user and 1,379 tokens/s in all at batch 16, {ending}")
    fields = ending.removeprefix("the largest batch that ").removesuffix(" allows").removesuffix(" allow")
    raised = f"raise {fields}, or " if "." in fields else ""
    assert finding.fix.startswith(f"{raised}run 3 of it side by side, or compare hardware: tandem plan ")


def test_requests_wait_in_the_orchestrator_alone(make_pair: MakePair) -> None:
    sections = {"limits": {"max_batch_size": 64}, "serve": {"max_concurrent_requests": 16, "topology": "single"}}
    finding = missed(make_pair(planning={"goal": {"tokens_per_s": 4000}}, **sections), 16)
    assert finding.message.endswith(", all that the KV pool holds")


def test_a_batch_that_users_would_feel_is_not_proposed(make_pair: MakePair) -> None:
    goal = {"tokens_per_s_per_user": 90, "tokens_per_s": 4000}
    finding = missed(make_pair(planning={"goal": goal}, limits={"max_batch_size": 16}), 16)
    assert finding.message.endswith("at batch 16, the largest batch that limits.max_batch_size allows")
    assert finding.fix.startswith("run 5 of it side by side, or compare"), "at batch 11 a user gets 90 and all get 991, so it takes five"


def test_where_no_limit_is_to_blame(make_pair: MakePair) -> None:
    alone = missed(make_pair(planning={"goal": {"tokens_per_s_per_user": 200}}), 16)
    assert alone.message.endswith(" at batch 1, where a user is served fastest")
    assert alone.fix.startswith("compare hardware: "), "no number of replicas serves a user faster"
    both = missed(make_pair(planning={"goal": {"tokens_per_s_per_user": 80, "tokens_per_s": 4000}}), 64)
    assert both.message.endswith(" at batch 50, since a larger batch gives each user less and a smaller one makes less in all")


def test_the_way_out_can_be_typed(make_pair: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 200}})
    monkeypatch.chdir(pair.file.parent)
    assert missed(pair, 16).fix == (
        "compare hardware: tandem plan pair.yaml --sweep chip=h200_sxm,b200_sxm,b300_sxm,gb200 --sweep count=1,2,4,8"
    )
    monkeypatch.chdir("/")
    assert f"tandem plan {str(pair.file).lstrip('/')} --sweep " in missed(pair, 16).fix
    staged = make_pair(planning={"goal": {"tokens_per_s_per_user": 200}}, hardware={"count": 3}, target={"pipeline_parallel": 3})
    assert missed(staged, 16).fix.endswith(" --sweep count=3,6,12,24")
    cpu = make_pair(planning={"goal": {"tokens_per_s_per_user": 200}}, hardware={"chip": "cpu"})
    assert "--sweep k=1,2,4,8 --sweep batch=1,8,32,64" in missed(cpu, 16).fix
