"""What the CPU lane refuses of a whole deployment."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builder.api import Deployment, EngineRequest, Finding, ModelFacts, ModelShape
from builder.hardware.chips import find_chip
from plugins.engines.openvino import ENGINE


@pytest.fixture
def deployment(make_request: Callable[..., EngineRequest], tmp_path: Path) -> Deployment:
    facts = ModelFacts(tmp_path, {}, ModelShape(1, 1, 1, 1))
    target, draft = make_request(tmp_path), make_request(tmp_path, role="draft")
    return Deployment(find_chip("cpu"), 1, target, facts, draft, facts, "draft_target", "tokens", 5, True, 0, "orchestrated")


def only(deployment: Deployment) -> Finding:
    (finding,) = ENGINE.check_deployment(deployment)
    assert finding.severity == "error"
    return finding


def test_what_the_lane_offers(deployment: Deployment) -> None:
    assert list(ENGINE.check_deployment(deployment)) == []
    assert list(ENGINE.check_deployment(replace(deployment, draft=None, draft_facts=None, method="ngram"))) == []


def test_topology(deployment: Deployment) -> None:
    finding = only(replace(deployment, topology="single"))
    assert finding.code == "PAIR-TOPOLOGY"
    assert finding.message == "The CPU lane serves target and draft as two Triton models that tensorrt_llm_bls asks in turn."
    assert (finding.field, finding.fix) == ("serve.topology", "set serve.topology: orchestrated")


def test_acceptance(deployment: Deployment) -> None:
    finding = only(replace(deployment, acceptance="logits"))
    assert finding.code == "PAIR-ACCEPTANCE"
    assert finding.message == "The CPU engine accepts draft tokens by token id; under sampling that keeps the target's distribution too."


def test_settings_of_other_lanes_are_not_ignored(deployment: Deployment) -> None:
    target, draft = deployment.target, deployment.draft
    assert draft is not None
    changed = replace(
        deployment,
        chip=find_chip("h200_sxm"),
        chip_count=2,
        target=replace(target, tensor_parallel=4, pipeline_parallel=2, release="1.2.1"),
        draft=replace(draft, tensor_parallel=2),
        host_offload_bytes=1,
    )
    findings = ENGINE.check_deployment(changed)
    assert {f.code for f in findings} == {"PAIR-NO-EFFECT"}
    assert [(f.field, f.found) for f in findings] == [
        ("hardware.chip", "h200_sxm"),
        ("hardware.count", "2"),
        ("target.tensor_parallel", "4"),
        ("target.pipeline_parallel", "2"),
        ("draft.tensor_parallel", "2"),
        ("kv_cache.host_offload_bytes", "1"),
        ("engine.release", "1.2.1"),
    ]
