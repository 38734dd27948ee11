"""All gates against one scripted server: honest, wrong, slow to speak, and dead."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from builder.errors import StageError
from builder.gates.acceptance import AcceptanceSettings
from builder.gates.accuracy import AccuracySettings, Logits
from builder.gates.lossless import LosslessSettings
from builder.gates.prompts import Prompt
from builder.gates.result import GateResult, not_evaluated
from builder.gates.runs import RunSettings
from builder.gates.speed import SpeedSettings
from builder.gates.validate import GateSettings, validate
from builder.gates.verdict import Verdict, combine
from builder.serving.client import Client
from builder.serving.transport import Answer, FakeTransport

PROMPTS = [Prompt(f"{kind}-{i}", kind, f"{kind} {i}") for kind in ("code", "chat") for i in range(2)]
RUN = RunSettings(max_tokens=4, deadline_s=5, chat=True, num_draft_tokens=None, lookup=None)
SETTINGS = GateSettings(
    lossless_run=RUN,
    speed_run=replace(RUN, max_tokens=5),
    lossless_prompts=4,
    speed_prompts=2,
    accuracy_windows=2,
    accuracy_window_tokens=4,
    lossless=LosslessSettings(0.0),
    accuracy=AccuracySettings(0.01, 0.99),
    speed=SpeedSettings(repeats=1, warmup_prompts=0, min_speedup_mix=0.0, min_speedup_kind=0.0),
    acceptance=AcceptanceSettings(0.1, 1.1),
)


def logits_of(ids: Sequence[int]) -> Logits:
    return np.random.default_rng(list(ids)).normal(size=(len(ids), 16)).astype(np.float32)


def parent(windows: Sequence[Sequence[int]]) -> Iterator[Logits]:
    return (logits_of(w) for w in windows)


def served(model: str, inputs: Mapping[str, Any], speculative_ids: Sequence[int] = (1, 2, 3, 4)) -> Answer:
    if model == "preprocessing":
        return {"INPUT_ID": np.arange(10)[None].astype(np.int32)}
    if model == "tensorrt_llm":
        return {"context_logits": logits_of(inputs["input_ids"][0])[None], "generation_logits": np.zeros((1, 1, 1, 16), np.float32)}
    alone = "num_draft_tokens" in inputs
    counters = {"total_draft_tokens": 0 if alone else 4, "total_accepted_draft_tokens": 0 if alone else 2, "num_rounds": 2}
    ids = (1, 2, 3, 4) if alone else speculative_ids
    return {"output_ids": np.array([ids], np.int32), **{k: np.array([[v]], np.int32) for k, v in counters.items()}}


def verdict_of(handler: Any, settings: GateSettings = SETTINGS) -> Verdict:
    return validate(Client(FakeTransport(handler)), PROMPTS, "text", parent, settings)


def test_an_honest_server_passes_every_gate() -> None:
    seen: list[str] = []
    verdict = validate(Client(FakeTransport(served)), PROMPTS, "text", parent, SETTINGS, lambda what, _share: seen.append(what))
    assert [g.name for g in verdict.gates] == ["lossless", "accuracy", "speed", "acceptance"]
    assert (verdict.passed, verdict.word, verdict.failed) == (True, "pass", ())
    assert len(set(seen)) == 3


def test_a_wrong_speculative_side_fails_one_gate() -> None:
    verdict = verdict_of(lambda model, inputs: served(model, inputs, (1, 2, 9, 4)))
    assert [g.name for g in verdict.failed] == ["lossless"]
    assert re.search(r"4 of 4 prompts differ; first: prompt code-0, output token 2", verdict.failed[0].summary)


def test_gates_that_were_not_asked_for_do_not_run() -> None:
    verdict = verdict_of(served, replace(SETTINGS, accuracy=None, speed=None))
    assert [g.name for g in verdict.gates] == ["lossless", "acceptance"]


def test_a_dead_server_fails_every_gate() -> None:
    def dead(_model: str, _inputs: Mapping[str, Any]) -> Answer:
        raise StageError("DEADLINE", "no complete answer within 5 s")

    verdict = verdict_of(dead)
    assert [g.passed for g in verdict.gates] == [False] * 4
    assert all("no complete answer" in g.summary for g in verdict.gates)


def test_an_error_in_one_gate_lets_the_others_run() -> None:
    def no_logits(model: str, inputs: Mapping[str, Any]) -> Answer:
        return {} if model == "tensorrt_llm" else served(model, inputs)

    assert [g.name for g in verdict_of(no_logits).failed] == ["accuracy"]


def test_an_interruption_ends_everything() -> None:
    def interrupted(_model: str, _inputs: Mapping[str, Any]) -> Answer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict_of(interrupted)


def test_absence_is_failure() -> None:
    passed = GateResult("speed", True, 2.0, 1.0, "x", "fine")
    verdict = combine([passed], ["lossless", "speed"])
    assert [(g.name, g.passed) for g in verdict.gates] == [("lossless", False), ("speed", True)]
    assert not Verdict(()).passed


def test_the_line_for_machines() -> None:
    line = combine([not_evaluated("speed", "no server", 1.0, "x")], ["speed"]).as_dict("build/report.json")
    gates = [{"name": "speed", "passed": False, "value": None, "threshold": 1.0, "unit": "x"}]
    assert line == {"schema": 1, "verdict": "fail", "gates": gates, "report": "build/report.json"}
