"""Real pairs on real cards: the memory plan with the sizes and the rules of the NVIDIA lanes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.api import Chip, Finding, ModelFacts, ModelShape, StoredFormat
from builder.planner.memory import MemoryPlan, check_memory, plan_memory
from builder.planner.requests import engine_request
from builder.spec.model import PairSpec
from plugins.engines.tensorrt_llm import ENGINE as ENGINES
from plugins.engines.tensorrt_llm_pytorch import ENGINE as PYTORCH

MIB = 2**20
H100 = Chip("h100_sxm", "NVIDIA H100 SXM", "hopper", "9.0", 81_559 * MIB, 3.35e12, {"fp8": 1.98e15})
H200 = replace(H100, name="h200_sxm", memory_bytes=143_771 * MIB)
B200 = replace(H100, name="b200_sxm", compute_capability="10.0", memory_bytes=183_359 * MIB)
A100 = replace(H100, name="a100_sxm", compute_capability="8.0", memory_bytes=81_920 * MIB)
CHIPS = {chip.name: chip for chip in (H100, H200, B200, A100)}

LLAMA_70B = ModelShape(70_553_706_496, 80, 8, 128, 64, 8192, 28672, 128256, 131072, 128256 * 8192)
LLAMA_1B = ModelShape(1_235_814_400, 16, 8, 64, 32, 2048, 8192, 128256, 131072, 128256 * 2048, tied_head=True)

UNQUANTIZED = StoredFormat()


def plan(
    chip: Chip, count: int = 1, engine: Any = ENGINES, stored: StoredFormat = UNQUANTIZED, **sections: Any
) -> tuple[MemoryPlan, list[Finding]]:
    target = {"checkpoint": "t", "weights": "fp8", "kv_cache": "fp8", "tensor_parallel": count, **sections.pop("target", {})}
    draft = {"checkpoint": "d", "weights": "fp8", "kv_cache": "fp8", **sections.pop("draft", {})}
    limits = {"max_batch_size": 16, "max_input_tokens": 3200, "max_sequence_tokens": 4096, "max_batched_tokens": 8192}
    spec = PairSpec.model_validate(
        {
            "name": "pair",
            "engine": {"kind": engine.kind, "release": "1.2.1"},
            "hardware": {"chip": chip.name, "count": count},
            "target": target,
            "draft": draft,
            "limits": limits | sections.pop("limits", {}),
            **sections,
        }
    )
    models = [
        (engine_request(spec, "target", Path("t")), ModelFacts(Path("t"), {}, LLAMA_70B, stored)),
        (engine_request(spec, "draft", Path("d")), ModelFacts(Path("d"), {}, LLAMA_1B)),
    ]
    found = plan_memory(spec, chip, engine, models, chips=CHIPS)
    return found, list(check_memory(spec, found, host_memory_bytes=0))


def test_a_70b_and_a_1b_on_one_h200() -> None:
    """The worked example leaves 66.4 GiB after weights and activations; runtime and the draft's copied head take 2.4 GiB more here."""
    found, findings = plan(H200)
    free = H200.memory_bytes - sum(engine.own_bytes for engine in found.engines)
    assert free / 2**30 == pytest.approx(66.4, abs=2.5)
    assert found.pool_tokens == pytest.approx(376_100, rel=0.04)
    assert found.pool_tokens * 176 * 1024 <= free * 0.95
    assert {f.code for f in findings} == {"MEM-FRACTIONS", "MEM-BUILD-DEVICE"}
    assert found.build_chip_count == 2


def test_a_draft_on_the_first_of_two_h100() -> None:
    found, findings = plan(H100, 2)
    target, draft = found.engines
    assert (target.devices, draft.devices) == ((0, 1), (0,))
    assert (target.kv_bytes_per_token, draft.kv_bytes_per_token) == (80 * 1024, 16 * 1024)
    assert found.full_sequences >= 16
    assert not [f for f in findings if f.severity == "error"]


def test_16_bit_weights_on_one_h100_name_what_would_fit() -> None:
    sixteen = {"weights": "none", "kv_cache": "bf16"}
    _, findings = plan(H100, target=sixteen, draft=sixteen)
    (found,) = findings
    assert found.code == "MEM-WEIGHTS"
    assert found.message == (
        "Weights take 134.2 GiB of one h100_sxm (target 131.4 GiB, draft 2.8 GiB), activations and runtime 6.3 GiB, of the 79.6 GiB that "
        "it has, 0.8 GiB of them in reserve: no room is left for keys and values."
    )
    assert found.fix == (
        "set target.weights: fp8 (1 sequence), or target.tensor_parallel: 2 and hardware.count: 2 (4 sequences), "
        "or hardware.chip: b200_sxm (26 sequences)"
    )


def test_fp8_is_not_a_way_out_on_an_a100() -> None:
    sixteen = {"weights": "none", "kv_cache": "bf16"}
    found, _ = plan(A100, target=sixteen, draft=sixteen)
    assert {"target.weights": "int8"} in [dict(way.changes) for way in found.alternatives]
    assert not [way for way in found.alternatives if "fp8" in way.changes.values()]


def test_what_a_checkpoint_stores_bounds_the_ways_out() -> None:
    """A checkpoint in FP8 is not made NVFP4."""
    long = {"limits": {"max_batch_size": 150}}
    free, _ = plan(B200, **long)
    bound, _ = plan(B200, stored=StoredFormat("modelopt", "FP8"), **long)
    assert any(way.changes.get("target.weights") == "nvfp4" for way in free.alternatives)
    assert bound.alternatives
    assert not any(way.changes.get("target.weights") == "nvfp4" for way in bound.alternatives)


@pytest.mark.parametrize("context_tokens", [16_218, 16_219])
def test_the_longest_sequence_that_a_refusal_names_fits_and_no_longer_one(context_tokens: int) -> None:
    changes: dict[str, Any] = {"draft": {"kv_cache": "bf16"}, "limits": {"max_batch_size": 1}}
    _, (refused,) = plan(H100, **{**changes, "limits": {"max_batch_size": 1, "max_sequence_tokens": 131_072}})
    assert refused.code == "MEM-POOL"
    longest = int(refused.needed.removeprefix("<= "))
    _, findings = plan(H100, **{**changes, "limits": {"max_batch_size": 1, "max_sequence_tokens": longest + context_tokens - 16_218}})
    assert ("MEM-POOL" in {f.code for f in findings}) == (context_tokens > 16_218)


def test_one_process_on_a_b200_takes_nvfp4_for_both_caches() -> None:
    nvfp4 = {"weights": "nvfp4", "kv_cache": "nvfp4"}
    found, findings = plan(B200, engine=PYTORCH, target=nvfp4, draft=nvfp4, serve={"topology": "single"})
    assert [engine.kv_bytes_per_token for engine in found.engines] == [90 * 1024, 9 * 1024]
    assert "MEM-FRACTIONS" not in {f.code for f in findings}
    assert {engine.free_fraction for engine in found.engines} == {0.95}
