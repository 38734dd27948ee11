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
        "set limits.max_sequence_tokens: 78618 and limits.max_input_tokens: 59980, or target.kv_cache: fp8 (1 sequence), "
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
        "set limits.max_batch_size: 4, or limits.max_sequence_tokens: 9178 and limits.max_input_tokens: 8402, "
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


def test_a_calibration_that_needs_more_cards_than_serve(plan_pair: PlanPair) -> None:
    engine = {"build": BuildNeeds(0, 0, 197 * GIB)}
    (found,) = findings(plan_pair, engine=engine, target_gib=3, draft_gib=2)
    assert (found.code, found.severity, found.field) == ("MEM-BUILD-DEVICE", "warning", "hardware.count")
    assert found.message == ("Quantizing and building takes, by estimate, the device memory of 3 chips (card); the pair is to run on 1.")
    assert findings(plan_pair, engine=engine, target_gib=3, draft_gib=2, hardware={"chip": "card", "count": 3}) == []


def test_this_machines_memory_is_measured(plan_pair: PlanPair) -> None:
    spec, plan = plan_pair(chip=HOST, target_gib=1e6)
    assert [f.code for f in check_memory(spec, plan)] == ["MEM-HOST"]
