"""The full sentence of every refusal and warning of the memory plan, and a plan that gets none."""

from dataclasses import replace
from typing import Any

import pytest

from builder.api import BuildNeeds, Finding
from builder.planner.memory import check_memory
from tests.unit.builder.planner.memory.conftest import CARD, GIB, HOST, PlanPair

LONG = {"max_batch_size": 16, "max_input_tokens": 100_000, "max_sequence_tokens": 131_072, "max_batched_tokens": 8192}
LARGE = replace(CARD, name="large", memory_bytes=141 * GIB)


def findings(plan_pair: PlanPair, *, host_gib: float = 0, **changes: Any) -> list[Finding]:
    spec, plan = plan_pair(**changes)
    return list(check_memory(spec, plan, host_memory_bytes=int(host_gib * GIB)))


def test_two_models_on_one_card_with_both_fractions_at_their_default(plan_pair: PlanPair) -> None:
    """80 GiB, target weights 40 GiB, draft weights 14 GiB: whichever loads first leaves too little for the other."""
    (found,) = findings(plan_pair, target_gib=40, draft_gib=14)
    assert (found.code, found.severity, found.field) == ("MEM-FRACTIONS", "info", "kv_cache")
    assert found.message == (
        "With both KV fractions at the default of engine.kind round, 0.9, the pair would load in neither order on one card: "
        "target first takes 0.9 "
        "of 40.0 GiB and leaves 4.0 GiB for the draft's 14.0 GiB; draft first takes 0.9 of 66.0 GiB and leaves 6.6 GiB for the target's "
        "40.0 GiB. "
        "Both pools are capped at 147136 tokens instead, so the order of loading does not matter."
    )
    assert found.needed == "caps, or fractions of target 0.9452, draft 0.6327"


def test_an_order_in_which_the_default_fractions_would_do(plan_pair: PlanPair) -> None:
    (found,) = findings(plan_pair, target_gib=40, draft_gib=3)
    assert "the pair would load in one order only on one card: target first takes 0.9 of 40.0 GiB and leaves 4.0 GiB" in found.message


def test_the_answer_is_the_same_whichever_engine_is_named_first(plan_pair: PlanPair) -> None:
    _, plan = plan_pair(target_gib=40, draft_gib=14)
    _, swapped = plan_pair(target_gib=14, draft_gib=40, kv=(16 * 1024, 160 * 1024))
    assert plan.pool_tokens == swapped.pool_tokens
    assert {e.free_fraction for e in plan.engines} == {e.free_fraction for e in swapped.engines}


@pytest.mark.parametrize("changes", [{"draft_gib": 2, "target_gib": 3}, {"draft": {"method": "ngram"}}, {"serve": {"topology": "single"}}])
def test_fractions_are_no_matter_where_both_would_load_or_one_process_serves(plan_pair: PlanPair, changes: dict[str, Any]) -> None:
    assert findings(plan_pair, **changes) == []


def test_weights_that_do_not_fit(plan_pair: PlanPair) -> None:
    (found,) = findings(plan_pair, target_gib=141, draft_gib=3, engine={"activation_bytes": GIB}, chips={"large": LARGE, "card": CARD})
    assert (found.code, found.severity, found.field) == ("MEM-WEIGHTS", "error", "hardware.chip")
    assert found.message == (
        "Weights take 144.0 GiB of one card (target 141.0 GiB, draft 3.0 GiB), activations and runtime 2.0 GiB, of the 80.0 GiB that it "
        "has, 0.8 GiB of them in reserve: no room is left for keys and values."
    )
    assert (found.found, found.needed) == ("146.0 GiB", "< 79.2 GiB")
    assert found.fix == ("set target.weights: fp8 (10 sequences), or target.tensor_parallel: 2 and hardware.count: 2 (19 sequences)")


def test_a_sequence_that_does_not_fit(plan_pair: PlanPair) -> None:
    (found,) = findings(plan_pair, target_gib=60, draft_gib=6, limits=LONG)
    assert (found.code, found.field) == ("MEM-POOL", "limits.max_sequence_tokens")
    assert found.message == (
        "One sequence of full length (131072 tokens, and 6 slots for drafts and the next token) takes 22.0 GiB of keys and values in both "
        "pools, and 13.2 GiB of one card are left beside weights, activations, runtime and reserve."
    )
    assert found.fix == (
        "set limits.max_sequence_tokens: 78618 and limits.max_input_tokens: 47546, or target.kv_cache: fp8 (1 sequence), "
        "or target.weights: fp8 (1 sequence), or target.tensor_parallel: 2 and hardware.count: 2 (3 sequences)"
    )


def test_a_batch_that_does_not_fit_at_full_length(plan_pair: PlanPair) -> None:
    limits = {**LONG, "max_input_tokens": 30_000, "max_sequence_tokens": 32_768}
    (found,) = [f for f in findings(plan_pair, limits=limits, chips={"large": LARGE}) if f.code != "MEM-FRACTIONS"]
    assert (found.code, found.severity, found.field) == ("MEM-BATCH", "warning", "limits.max_batch_size")
    assert found.message == (
        "At full length (32768 tokens, and 6 slots for drafts and the next token) 4 of limits.max_batch_size 16 sequences fit into both "
        "pools at once; the others wait for room."
    )
    assert (found.found, found.needed) == ("16", "<= 4")
    assert found.fix == (
        "set limits.max_batch_size: 4, or limits.max_sequence_tokens: 9178 and limits.max_input_tokens: 6410, "
        "or target.kv_cache: nvfp4 and draft.kv_cache: nvfp4 (17 sequences), "
        "or target.tensor_parallel: 4 and hardware.count: 4 (30 sequences)"
    )


def test_limits_that_the_card_can_hold(plan_pair: PlanPair) -> None:
    assert findings(plan_pair, target_gib=3, draft_gib=2) == []


def test_a_machine_with_too_little_memory(plan_pair: PlanPair) -> None:
    found, _ = findings(plan_pair, chip=HOST, host_gib=2)
    assert (found.code, found.severity) == ("MEM-HOST", "warning")
    assert found.message == (
        "The engines take 54.0 GiB and both pools of 16640 tokens 2.8 GiB, together more than the 2.0 GiB of this machine."
    )
    assert findings(plan_pair, chip=HOST, host_gib=57) == []


@pytest.mark.parametrize(("chip", "severity"), [(HOST, "warning"), (CARD, "info")])
def test_a_machine_that_cannot_build(plan_pair: PlanPair, chip: Any, severity: str) -> None:
    engine = {"build": BuildNeeds(100 * GIB, GIB)}
    (found,) = findings(plan_pair, chip=chip, host_gib=64, engine=engine, target_gib=3, draft_gib=2)
    assert (found.code, found.severity) == ("MEM-BUILD-HOST", severity)
    assert found.message == "Building takes 100.0 GiB of host memory at its peak, and this machine has 64.0 GiB."


@pytest.mark.parametrize(
    ("build_gib", "severity", "chips"), [(81, "info", 2), (197, "info", 4), (600, "info", 8), (700, "warning", 16), (1300, "warning", 32)]
)
def test_a_calibration_that_needs_more_cards_than_serve(plan_pair: PlanPair, build_gib: int, severity: str, chips: int) -> None:
    engine = {"build": BuildNeeds(0, 0, build_gib * GIB)}
    (found,) = findings(plan_pair, engine=engine, target_gib=3, draft_gib=2)
    assert (found.code, found.severity, found.field) == ("MEM-BUILD-DEVICE", severity, "hardware.count")
    assert found.message == (
        f"Quantizing and building takes, by estimate, the device memory of {chips} chips (card); the pair is to run on 1. A checkpoint "
        "that is stored so already, as a ModelOpt export with int8 weights, is not quantized again."
    )
    assert found.fix == f"build on a machine with {chips} of these chips, or start from a ModelOpt export with int8 weights"


def test_as_many_cards_as_a_build_takes(plan_pair: PlanPair) -> None:
    engine = {"build": BuildNeeds(0, 0, 197 * GIB)}
    assert findings(plan_pair, engine=engine, target_gib=3, draft_gib=2, hardware={"chip": "card", "count": 3}) == []


def test_what_a_draft_on_the_first_device_leaves_unused_on_the_others(plan_pair: PlanPair) -> None:
    eight = {"hardware": {"chip": "card", "count": 8}, "target_parallel": 8, "kv": (160 * 1024, 64 * 1024)}
    (found,) = [f for f in findings(plan_pair, target_gib=240, draft_gib=14, **eight) if f.code != "MEM-FRACTIONS"]
    assert (found.code, found.severity, found.field) == ("MEM-IDLE-DEVICES", "info", "draft")
    assert found.message == (
        "The draft's 40.1 GiB on the first device limit every pool to 426912 tokens, so on the 7 devices without it 280.4 GiB stay unused; "
        "more tokens fit with draft.kv_cache: nvfp4 (478 sequences), or draft.tensor_parallel: 8 (825 sequences), or a smaller draft. "
        "The limits can have 16640 tokens live at once; what a pool holds beyond them keeps prefixes for reuse."
    )
    small = findings(plan_pair, target_gib=240, draft_gib=1, **{**eight, "kv": (160 * 1024, 1024)})
    assert "MEM-IDLE-DEVICES" not in {f.code for f in small}


def test_memory_that_is_unused_while_sequences_wait_is_a_warning(plan_pair: PlanPair) -> None:
    two = {"hardware": {"chip": "card", "count": 2}, "target_parallel": 2, "kv": (160 * 1024, 64 * 1024)}
    limits = {"max_batch_size": 64, "max_input_tokens": 1024, "max_sequence_tokens": 32_768}
    found = {f.code: f.severity for f in findings(plan_pair, target_gib=60, draft_gib=14, limits=limits, **two)}
    assert found["MEM-IDLE-DEVICES"] == found["MEM-BATCH"] == "warning"


def test_blocks_in_host_memory_must_fit_there(plan_pair: PlanPair) -> None:
    (found,) = findings(plan_pair, host_gib=64, target_gib=3, draft_gib=2, kv_cache={"host_offload_bytes": 65 * GIB})
    assert (found.code, found.severity, found.field) == ("MEM-HOST-OFFLOAD", "warning", "kv_cache.host_offload_bytes")
    assert found.message == "kv_cache.host_offload_bytes keeps 65.0 GiB of blocks in host memory, and this machine has 64.0 GiB."
    assert findings(plan_pair, host_gib=64, target_gib=3, draft_gib=2, kv_cache={"host_offload_bytes": 64 * GIB}) == []


def test_a_pair_that_the_lane_refuses_is_told_to_mend_that_first(plan_pair: PlanPair) -> None:
    refused: dict[str, Any] = {"engine": {"refused": ("int8",)}, "target": {"checkpoint": "t", "kv_cache": "int8"}}
    limits = {"max_batch_size": 16, "max_input_tokens": 30_000, "max_sequence_tokens": 32_768}
    (found,) = [f for f in findings(plan_pair, limits=limits, chips={"large": LARGE}, **refused) if f.code == "MEM-BATCH"]
    assert found.fix == "mend RULE-TEST first and plan again, or set target.kv_cache: nvfp4 and draft.kv_cache: nvfp4 (17 sequences)"


def test_ways_out_that_shorten_sequences_name_every_field(plan_pair: PlanPair) -> None:
    changes: dict[str, Any] = {
        "limits": {"max_batch_size": 400, "max_input_tokens": 1500, "max_sequence_tokens": 2048},
        "planning": {"workload": {"input_tokens": 1000, "output_tokens": 500}},
        "gates": {"speed": {"tokens": 400}},
    }
    (found,) = [f for f in findings(plan_pair, **changes) if f.code == "MEM-BATCH"]
    assert found.fix == (
        "set limits.max_batch_size: 70, or limits.max_sequence_tokens: 346 and limits.max_input_tokens: 173 and gates.speed.tokens: 345 "
        "and gates.accuracy.window_tokens: 173 and planning.workload.input_tokens: 173 and planning.workload.output_tokens: 173, "
        "or target.tensor_parallel: 4 and hardware.count: 4 (478 sequences)"
    )


def test_this_machines_memory_is_measured(plan_pair: PlanPair) -> None:
    spec, plan = plan_pair(chip=HOST, target_gib=1e6)
    assert [f.code for f in check_memory(spec, plan)] == ["MEM-HOST"]
