"""Plans: what is refused, with every reason at once, and what the keys of stages depend on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from builder.api import BuildNeeds, Deployment, EngineMemory, EngineRequest, Finding, ModelShape, ServerNeeds, StoredFormat
from builder.checkpoint import digest_folder
from builder.planner import Plan, PlanContext, make_plan
from builder.spec import load_pair

Write = Callable[..., Path]


@dataclass
class FakeEngine:
    """An engine lane that needs nothing."""

    kind: str = "openvino"
    api_version: int = 2
    default_pool_fraction: float | None = None
    adapts_draft_length: bool = True
    tool_versions: Mapping[str, str] = field(default_factory=lambda: {"tool": "1"})

    def check(self, _request: EngineRequest) -> Sequence[Finding]:
        return ()

    def check_deployment(self, _deployment: Deployment) -> Sequence[Finding]:
        return ()

    def build_needs(self, _request: EngineRequest, shape: ModelShape, _stored: StoredFormat | None = None) -> BuildNeeds:
        return BuildNeeds(shape.parameters, shape.parameters)

    def server_needs(self) -> ServerNeeds:
        return ServerNeeds()

    def memory(self, _request: EngineRequest, shape: ModelShape, _stored: StoredFormat | None = None) -> EngineMemory:
        return EngineMemory(shape.parameters, 2 * shape.layers * shape.kv_heads * shape.head_dim)

    def versions(self) -> Mapping[str, str]:
        return self.tool_versions


def plan_of(target_folder: Path, draft_folder: Path | None, lane: Any = None, **sections: Any) -> Plan:
    import yaml

    data: dict[str, Any] = {"name": "demo", "target": {"checkpoint": str(target_folder)}}
    data["draft"] = {"checkpoint": str(draft_folder)} if draft_folder else {"method": "ngram"}
    for name, values in sections.items():
        data[name] = {**data.get(name, {}), **values}
    file = target_folder.parent / "pair.yaml"
    file.write_text(yaml.safe_dump(data))
    return make_plan(load_pair(file), context(target_folder.parent / "build", lane))


def context(location: Path, lane: Any = None) -> PlanContext:
    return PlanContext(lambda _kind: lane or FakeEngine(), location, digest_folder)


def test_good_pair_has_three_stages_and_balanced_pools(write_checkpoint: Write) -> None:
    plan = plan_of(write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1))
    assert plan.ok, plan.findings
    assert [s.name for s in plan.stages] == ["build-target", "build-draft", "package"]
    assert plan.memory is not None
    assert plan.memory.engines[0].pool_tokens == plan.memory.engines[1].pool_tokens == plan.memory.needed_tokens
    assert plan.as_dict()["schema"] == 1


def test_ngram_has_no_draft_stage(write_checkpoint: Write) -> None:
    plan = plan_of(write_checkpoint("target"), None)
    assert [s.name for s in plan.stages] == ["build-target", "package"]


def test_pool_holds_every_sequence_with_a_whole_draft(write_checkpoint: Write) -> None:
    plan = plan_of(write_checkpoint("target"), None, limits={"max_batch_size": 3, "max_sequence_tokens": 300, "max_input_tokens": 260})
    assert plan.memory is not None
    assert plan.memory.pool_tokens == 3 * 320


def codes(plan: Plan, severity: str = "error") -> list[str]:
    return [f.code for f in plan.findings if f.severity == severity]


def test_vocabularies_that_differ_in_size_and_meaning(write_checkpoint: Write) -> None:
    words = {f"t{i}": i for i in range(63)} | {"other": 63}
    plan = plan_of(write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1, vocab_size=63, vocabulary=words))
    assert codes(plan) == ["PAIR-VOCAB-MEANING"]
    assert not plan.ok
    assert plan.stages == ()


def test_every_reason_at_once(write_checkpoint: Write, tmp_path: Path) -> None:
    target = write_checkpoint("target", max_position_embeddings=128)
    plan = plan_of(target, target, speculation={"acceptance": "logits"})
    assert set(codes(plan)) == {"PAIR-CONTEXT", "PAIR-DRAFT-IS-TARGET"}
    both_missing = plan_of(tmp_path / "x", tmp_path / "y")
    assert codes(both_missing) == ["CKPT-MISSING", "CKPT-MISSING"]
    assert [f.field for f in both_missing.findings] == ["target.checkpoint", "draft.checkpoint"]


def test_large_draft_is_a_warning(write_checkpoint: Write) -> None:
    plan = plan_of(write_checkpoint("target", layers=4), write_checkpoint("draft", layers=3))
    assert "PAIR-DRAFT-SIZE" in codes(plan, "warning")
    assert plan.ok


def test_keys_follow_content_options_and_tools(write_checkpoint: Write) -> None:
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    keys = {s.name: s.key for s in plan_of(target, draft).stages}
    again = {s.name: s.key for s in plan_of(target, draft).stages}
    assert keys == again
    other = {s.name: s.key for s in plan_of(target, draft, draft={"weights": "int4"}).stages}
    assert other["build-target"] == keys["build-target"]
    assert other["build-draft"] != keys["build-draft"]
    assert other["package"] != keys["package"]
    newer = {s.name: s.key for s in plan_of(target, draft, FakeEngine(tool_versions={"tool": "2"})).stages}
    assert newer["build-target"] != keys["build-target"]
    moved = target.rename(target.with_name("moved"))
    assert {s.name: s.key for s in plan_of(moved, draft).stages} == keys


@pytest.mark.parametrize("method", ["ngram", "none"])
def test_no_draft_model_no_draft_tokens_for_the_engine(write_checkpoint: Write, method: str) -> None:
    plan = plan_of(write_checkpoint("target"), None, draft={"method": method})
    assert plan.requests[0].max_draft_tokens == (5 if method == "ngram" else 0)


def test_broken_tokenizer_file_is_a_finding(write_checkpoint: Write) -> None:
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    (draft / "tokenizer.json").write_text('{"model": ')
    assert codes(plan_of(target, draft)) == ["CKPT-TOKENIZER"]


def test_package_belongs_to_its_place(write_checkpoint: Write, tmp_path: Path) -> None:
    target = write_checkpoint("target")
    plan_of(target, None)
    pair = load_pair(tmp_path / "pair.yaml")
    here, there = (make_plan(pair, context(tmp_path / name)) for name in ("here", "there"))
    assert here.stages[0].key == there.stages[0].key
    assert here.stages[-1].key != there.stages[-1].key


def test_findings_name_file_line_and_field(write_checkpoint: Write) -> None:
    target = write_checkpoint("target", max_position_embeddings=128)
    plan = plan_of(target, None, limits={"max_sequence_tokens": 2048})
    finding = next(f for f in plan.findings if f.code == "PAIR-CONTEXT")
    assert finding.line == plan.pair.line("limits.max_sequence_tokens") > 0
    assert finding.message.startswith(f"{plan.pair.file}:{finding.line}: limits.max_sequence_tokens: ")
    assert finding.message.count("limits.max_sequence_tokens:") == 1


def test_memory_and_speed_of_a_refused_pair_are_still_shown(write_checkpoint: Write) -> None:
    plan = plan_of(write_checkpoint("target", max_position_embeddings=128), None)
    assert not plan.ok
    assert plan.memory is not None
    assert plan.speed is not None
    assert plan.stages == ()


def test_words_without_a_meaning_leave_nothing_to_work_out(write_checkpoint: Write) -> None:
    class Refusing(FakeEngine):
        def check(self, request: EngineRequest) -> Sequence[Finding]:
            return (Finding("ENGINE-WEIGHTS", "error", "no such weights", f"{request.role}.weights"),)

        def memory(self, _request: EngineRequest, _shape: ModelShape, _stored: StoredFormat | None = None) -> EngineMemory:
            raise KeyError

    assert plan_of(write_checkpoint("target"), None, Refusing()).memory is None


def test_unknown_chip_is_a_finding_beside_the_others(write_checkpoint: Write, tmp_path: Path) -> None:
    plan = plan_of(write_checkpoint("target", max_position_embeddings=128), None, hardware={"chip": "h20_sxm"})
    assert {"CHIP-UNKNOWN", "PAIR-CONTEXT"} <= set(codes(plan))


def test_stages_of_unhashed_weights_have_no_key(write_checkpoint: Write, tmp_path: Path) -> None:
    target = write_checkpoint("target")
    plan_of(target, None)
    unhashed = PlanContext(lambda _kind: FakeEngine(), tmp_path / "build", lambda _folder: None)
    plan = make_plan(load_pair(tmp_path / "pair.yaml"), unhashed)
    assert plan.ok
    assert [stage.key for stage in plan.stages] == [None, None]


def test_broken_file_of_measured_times_is_a_finding(write_checkpoint: Write, tmp_path: Path) -> None:
    (tmp_path / "steps.json").write_text("{")
    plan = plan_of(write_checkpoint("target"), None, planning={"measured": "steps.json"})
    assert codes(plan) == ["SPEED-MEASURED-INVALID"]
    assert plan.memory is not None


@dataclass
class StrictEngine(FakeEngine):
    """A lane that refuses what the core only warns of, and says it for each model."""

    def check(self, _request: EngineRequest) -> Sequence[Finding]:
        field = "limits.max_batched_tokens"
        return (Finding("RULE-TOKENS", "error", "A pass is too small.", field, "95", ">= 96", "set it to 96 or more"),)


def test_the_same_fact_is_said_once(write_checkpoint: Write) -> None:
    """By the lane, which knows that it cannot work; and once, though both models have it."""
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    limits = {"max_batch_size": 16, "max_batched_tokens": 95}
    warned = plan_of(target, draft, limits=limits)
    assert [f.code for f in warned.findings if f.field == "limits.max_batched_tokens"] == ["PAIR-BATCHED-TOKENS"]
    refused = plan_of(target, draft, StrictEngine(), limits=limits)
    assert [f.code for f in refused.findings if f.field == "limits.max_batched_tokens"] == ["RULE-TOKENS"]
    other = plan_of(target, draft, StrictEngine(), limits=limits | {"max_batched_tokens": 90})
    assert [f.code for f in other.findings if f.field == "limits.max_batched_tokens"] == ["PAIR-BATCHED-TOKENS", "RULE-TOKENS"]
