"""The engine lane as a plug-in: found by its entry point, sized by formula, honest about what it does not build yet."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder import registry
from builder.api import API_VERSION, EngineOptions, RefusedError
from plugins.engines.tensorrt_llm import ENGINE
from tests.unit.plugins.nvidia.pairs import LLAMA_70B, deployment, request


def test_it_is_found_by_name() -> None:
    engine = registry.engine("tensorrt_llm")
    assert (engine.kind, engine.api_version) == ("tensorrt_llm", API_VERSION)
    assert engine.adapts_draft_length


def test_it_is_sized() -> None:
    memory = ENGINE.memory(request("target"), LLAMA_70B)
    assert memory.kv_bytes_per_token == 160 * 1024
    assert memory.kv_cache == "fp8"
    assert 65e9 < memory.weights_bytes < 80e9
    needs = ENGINE.build_needs(request("target"), LLAMA_70B)
    assert needs.disk_bytes > memory.weights_bytes


@pytest.mark.parametrize(
    "call",
    [
        lambda: ENGINE.build(request("target"), Path("engine"), lambda _what, _share: None),
        lambda: ENGINE.parent_logits(Path("model"), [[1]]),
        lambda: ENGINE.open(Path("target"), None, EngineOptions()),
    ],
    ids=["build", "parent_logits", "open"],
)
def test_what_is_not_built_yet_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(RefusedError) as refusal:
        call()
    assert refusal.value.finding.code == "LANE-PLAN-ONLY"
    assert str(refusal.value) == "This release of trt-tandem plans engine.kind tensorrt_llm; it does not build or run it yet."
    assert refusal.value.finding.fix == "use `tandem plan` for this pair, or set engine.kind: openvino to build it on a CPU"


def test_no_package_is_asked_for_that_would_not_make_it_build() -> None:
    assert tuple(ENGINE.missing_packages()) == ()
    assert set(ENGINE.versions()) <= {"tensorrt_llm"}


def test_the_default_share_of_free_memory_is_the_lanes_own() -> None:
    assert ENGINE.default_pool_fraction == 0.9


def test_the_record_of_a_foreign_engine_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"version": "1.2.1"}))
    assert ENGINE.record(tmp_path) == {"version": "1.2.1"}
    assert ENGINE.server_needs().backends == {}


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, plugins.engines.tensorrt_llm as lane; lane.ENGINE.missing_packages(); print(*sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "torch", "transformers", "openvino", "tensorrt_llm", "pydantic"} & set(modules)


def test_the_plan_says_that_the_lane_is_planned_only() -> None:
    assert "LANE-PLAN-ONLY" in {f.code for f in ENGINE.check_deployment(deployment())}
