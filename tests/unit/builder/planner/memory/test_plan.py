"""The memory plan: pools, capacity, what is counted where."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.api import BuildNeeds
from builder.planner.memory import needed_tokens
from builder.planner.memory.needs import longest_context_tokens, sequence_tokens
from tests.unit.builder.planner.memory.conftest import GIB, HOST, PlanPair, spec_of

LIMITS = {"max_batch_size": 3, "max_input_tokens": 200, "max_sequence_tokens": 300, "max_batched_tokens": 64}
GATES = {"lossless": {"tokens": 8}, "speed": {"tokens": 8}, "accuracy": {"window_tokens": 64}}


def test_head_room_for_a_whole_draft_and_the_next_token() -> None:
    spec = spec_of(limits=LIMITS, gates=GATES, speculation={"max_draft_tokens": 5})
    assert sequence_tokens(spec, 300) == 320
    assert sequence_tokens(spec, 314) == 320
    assert sequence_tokens(spec, 315) == 352
    assert needed_tokens(spec) == 3 * 320


def test_without_drafts_one_slot_is_for_the_next_token() -> None:
    spec = spec_of(limits=LIMITS, gates=GATES, draft={"method": "none"})
    assert sequence_tokens(spec, 319) == 320
    assert sequence_tokens(spec, 320) == 352


@given(length=st.integers(1, 5000), sequences=st.integers(1, 9), drafts=st.integers(1, 32), block=st.sampled_from([16, 32, 64]))
def test_the_longest_context_fits_and_one_token_more_does_not(length: int, sequences: int, drafts: int, block: int) -> None:
    spec = spec_of(speculation={"max_draft_tokens": drafts}, kv_cache={"tokens_per_block": block})
    tokens = sequences * sequence_tokens(spec, length)
    longest = longest_context_tokens(spec, tokens, sequences)
    assert longest >= length
    assert sequences * sequence_tokens(spec, longest) <= tokens < sequences * sequence_tokens(spec, longest + 1)


def test_in_host_memory_pools_are_as_large_as_the_limits_need(plan_pair: PlanPair) -> None:
    spec, plan = plan_pair(chip=HOST)
    assert {engine.pool_tokens for engine in plan.engines} == {needed_tokens(spec)}
    assert {engine.free_fraction for engine in plan.engines} == {0.0}
    assert (plan.reserve_bytes, plan.stranded_bytes, plan.alternatives) == (0, 0, ())


def test_on_a_card_pools_fill_the_budget_with_equal_tokens(plan_pair: PlanPair) -> None:
    spec, plan = plan_pair()
    target, draft = plan.engines
    assert plan.reserve_bytes == round(26 * GIB * 0.05)
    assert target.pool_tokens == draft.pool_tokens == (26 * GIB - plan.reserve_bytes) // (176 * 1024 * 32) * 32
    assert 0 <= plan.stranded_bytes < 176 * 1024 * 32
    assert plan.pool_tokens > needed_tokens(spec)


def test_a_draft_beside_a_split_target_lives_on_device_0_and_decides(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(target_parallel=2, hardware={"chip": "card", "count": 2})
    target, draft = plan.engines
    assert (target.devices, draft.devices) == ((0, 1), (0,))
    free = 80 * GIB - 20 * GIB - 14 * GIB
    assert plan.pool_tokens == (free - plan.reserve_bytes) // (96 * 1024 * 32) * 32


def test_every_stage_and_split_is_a_device(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(target_parallel=2, stages=2, hardware={"chip": "card", "count": 4})
    assert plan.engines[0].devices == (0, 1, 2, 3)


def test_a_single_model_takes_the_whole_pool(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(draft={"method": "ngram"})
    assert plan.share("draft") is None
    assert plan.pool_tokens == (40 * GIB - 2 * GIB) // (160 * 1024 * 32) * 32
    assert plan.engines[0].free_fraction == pytest.approx(0.95, abs=1e-3)


def test_one_process_makes_both_pools_of_what_both_models_leave(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(serve={"topology": "single"})
    assert [engine.free_fraction for engine in plan.engines] == [pytest.approx(0.95, abs=1e-3)] * 2
    assert [[step.role for step in order] for order in plan.load_orders] == [["pair"]]


def test_fractions_let_each_engine_reach_its_cap_in_both_orders(plan_pair: PlanPair) -> None:
    _, plan = plan_pair()
    target, draft = plan.engines
    both = 80 * GIB - target.own_bytes - draft.own_bytes
    assert target.free_fraction == pytest.approx(target.pool_bytes / (both - draft.pool_bytes), abs=1e-3)
    assert draft.free_fraction == pytest.approx(draft.pool_bytes / (both - target.pool_bytes), abs=1e-3)


@pytest.mark.parametrize(("limit", "lengths"), [(1024, [1024]), (2048, [1024, 2048]), (5000, [1024, 2048, 4096, 5000])])
def test_capacity_is_told_at_powers_of_two_and_at_the_limit(plan_pair: PlanPair, limit: int, lengths: list[int]) -> None:
    limits = {**LIMITS, "max_input_tokens": 512, "max_sequence_tokens": limit}
    _, plan = plan_pair(limits=limits)
    assert [row.context_tokens for row in plan.capacity] == lengths
    for row in plan.capacity:
        blocks = -(-(row.context_tokens + 6) // 32)
        assert row.sequences == plan.pool_tokens // 32 // blocks
    assert plan.full_sequences == plan.capacity[-1].sequences


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    target=st.floats(1, 60),
    draft=st.floats(0.1, 15),
    kv=st.tuples(st.integers(4 * 1024, 600 * 1024), st.integers(1024, 200 * 1024)),
    block=st.sampled_from([16, 32, 64]),
)
def test_pools_are_equal_and_strand_less_than_one_percent_of_what_is_free(
    plan_pair: PlanPair, target: float, draft: float, kv: tuple[int, int], block: int
) -> None:
    _, plan = plan_pair(target_gib=target, draft_gib=draft, kv=kv, kv_cache={"tokens_per_block": block})
    free = plan.device_bytes - sum(engine.own_bytes for engine in plan.engines)
    formula = (free - plan.reserve_bytes) / sum(kv)
    assert len({engine.pool_tokens for engine in plan.engines}) == 1
    assert 0 <= formula - plan.pool_tokens < block
    assert plan.stranded_bytes < free / 100
    assert plan.total_bytes + plan.reserve_bytes <= plan.device_bytes


@pytest.mark.parametrize(
    ("sections", "backends", "models"),
    [({}, {}, 3), ({}, {"tensorrtllm": Path("b")}, 5), ({"draft": {"method": "none"}}, {"tensorrtllm": Path("b")}, 4)],
)
def test_shared_memory_is_64_mib_for_every_python_model(
    plan_pair: PlanPair, sections: Mapping[str, Any], backends: Mapping[str, Path], models: int
) -> None:
    _, plan = plan_pair(engine={"backends": backends}, **sections)
    assert plan.shared_memory_bytes == models * 64 * 2**20


def test_one_process_is_one_python_model(plan_pair: PlanPair) -> None:
    assert plan_pair(serve={"topology": "single"})[1].shared_memory_bytes == 64 * 2**20


def test_builds_follow_each_other_and_both_results_stay(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(engine={"build": BuildNeeds(3 * GIB, 5 * GIB, 170 * GIB)})
    assert plan.build == BuildNeeds(3 * GIB, 10 * GIB, 170 * GIB)
    assert plan.build_chip_count == 3


def test_what_machines_read(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(target_gib=40, limits={**LIMITS, "max_batch_size": 10_000}, gates=GATES)
    content = plan.as_dict()
    assert {"target", "draft", "device", "capacity", "build", "needed_tokens", "shared_memory_bytes"} <= set(content)
    assert content["target"]["pool_tokens"] == content["draft"]["pool_tokens"] == plan.pool_tokens
    assert content["target"]["pool_bytes"] == plan.pool_tokens * 160 * 1024
    assert content["device"]["used_bytes"] == plan.total_bytes
    assert content["build"]["disk_bytes"] == 10 * GIB
