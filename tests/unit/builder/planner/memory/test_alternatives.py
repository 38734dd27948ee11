"""What would make room is tried, and only what the lane accepts is named."""

from dataclasses import replace

from tests.unit.builder.planner.memory.conftest import CARD, GIB, PlanPair

LARGE = replace(CARD, name="large", memory_bytes=141 * GIB)
HUGE = replace(CARD, name="huge", memory_bytes=180 * GIB)


def ways(plan_pair: PlanPair, **changes: object) -> list[dict[str, str]]:
    return [dict(found.changes) for found in plan_pair(**changes)[1].alternatives]


def test_nothing_is_looked_for_where_all_fits(plan_pair: PlanPair) -> None:
    assert ways(plan_pair, target_gib=8, draft_gib=1, chips={"large": LARGE}) == []


def test_the_smallest_chip_that_fits_and_no_smaller_one(plan_pair: PlanPair) -> None:
    found = ways(plan_pair, target_gib=150, chips={"huge": HUGE, "large": LARGE}, engine={"refused": ("fp8", "nvfp4")})
    assert {"hardware.chip": "huge"} in found
    assert {"hardware.chip": "large"} not in found


def test_every_alternative_holds_what_it_says(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(target_gib=141, draft_gib=3)
    assert plan.alternatives
    for alternative in plan.alternatives:
        changes = alternative.changes
        if changes.get("target.weights") == "fp8":
            _, other = plan_pair(target_gib=70.5, draft_gib=3)
            assert other.full_sequences == alternative.sequences
        if "target.tensor_parallel" in changes:
            _, other = plan_pair(target_gib=141, draft_gib=3, target_parallel=int(changes["target.tensor_parallel"]))
            assert other.full_sequences == alternative.sequences


def test_what_the_lane_refuses_is_not_named(plan_pair: PlanPair) -> None:
    assert {"target.weights": "fp8"} in ways(plan_pair, target_gib=141, draft_gib=3)
    found = ways(plan_pair, target_gib=141, draft_gib=3, engine={"refused": ("fp8",)})
    assert {"target.weights": "fp8"} not in found
    assert {"target.weights": "nvfp4"} in found


def test_a_field_that_was_refused_before_must_be_accepted_after(plan_pair: PlanPair) -> None:
    changes = {
        "target": {"checkpoint": "t", "kv_cache": "int8"},
        "limits": {"max_batch_size": 13, "max_input_tokens": 30_000, "max_sequence_tokens": 32_768},
    }
    nvfp4 = {"target.kv_cache": "nvfp4"}
    assert nvfp4 in ways(plan_pair, **changes, engine={"refused": ("int8",)})
    assert nvfp4 not in ways(plan_pair, **changes, engine={"refused": ("int8", "nvfp4")})


def test_only_splits_that_divide_the_heads_are_named(plan_pair: PlanPair) -> None:
    no_weights = {"refused": ("fp8", "nvfp4")}
    assert ways(plan_pair, target_gib=141, draft_gib=3, heads=28, engine=no_weights) != []
    assert ways(plan_pair, target_gib=141, draft_gib=3, heads=25, engine=no_weights) == []


def test_chips_that_are_there_are_not_asked_for(plan_pair: PlanPair) -> None:
    no_weights = {"refused": ("fp8", "nvfp4")}
    found = ways(plan_pair, target_gib=141, draft_gib=3, engine=no_weights, hardware={"chip": "card", "count": 2})
    assert found == [{"target.tensor_parallel": "2"}]


def test_one_process_splits_both_models_alike(plan_pair: PlanPair) -> None:
    found = ways(plan_pair, target_gib=141, draft_gib=3, serve={"topology": "single"}, engine={"refused": ("fp8", "nvfp4")})
    assert found == [{"target.tensor_parallel": "2", "draft.tensor_parallel": "2", "hardware.count": "2"}]


def test_changes_are_paired_where_no_single_one_is_enough(plan_pair: PlanPair) -> None:
    found = ways(plan_pair, target_gib=3000, draft_gib=3)
    assert {"target.weights": "nvfp4", "target.tensor_parallel": "16", "hardware.count": "16"} in found
    assert all(len(changes) > 1 for changes in found)


def test_no_way_out_is_made_up(plan_pair: PlanPair) -> None:
    assert ways(plan_pair, target_gib=1e6) == []


def test_a_draft_that_crowds_the_first_chip_is_spread(plan_pair: PlanPair) -> None:
    found = ways(plan_pair, target_gib=100, draft_gib=40, target_parallel=2, hardware={"chip": "card", "count": 2})
    assert {"draft.tensor_parallel": "2"} in found
    one_process = {"serve": {"topology": "single"}, "hardware": {"chip": "card", "count": 2}}
    assert {"draft.tensor_parallel": "2"} not in ways(plan_pair, target_gib=100, draft_gib=40, target_parallel=2, **one_process)
