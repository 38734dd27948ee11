"""The whole benchmark with a fake engine and fake peers: all alive, some broken, none there."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builder.api import EngineOptions
from builder.bench.engine import PairUnderTest, PeersAt, bench_prompts, open_sessions, run_bench
from builder.bench.peers import PeerPlace
from builder.bench.report import BenchReport, BenchSettings
from builder.bench.systems import SINGLE, TUNED_FOR
from builder.errors import RefusedError
from builder.gates.prompts import Prompt

MakePeer = Callable[..., PeerPlace]
DIGESTS = {"target": "abc", "draft": "def"}
SETTINGS = BenchSettings(prompts_per_kind=1, new_tokens=6, repeats=2, concurrency=3, threads=1)
PROMPTS = [Prompt(f"{kind}-{i}", kind, "one three seven") for kind in ("chat", "code") for i in range(3)]
BREAKS_LATER = """
from protocol import serve
class Peer:
    count = 0
    def load(self, settings): return {}
    def generate(self, prompts, new_tokens, mode):
        self.count += 1
        assert self.count < 4, "worn out"
        return [[1] * new_tokens for _ in prompts]
serve(Peer())
"""


def pair(tmp_path: Path, *, draft: bool = True) -> PairUnderTest:
    roles = ("target", "draft") if draft else ("target",)
    folders = {role: tmp_path / role for role in roles}
    return PairUnderTest("demo", folders, folders, {r: DIGESTS[r] for r in roles}, 64, 5, {"trt-tandem": "1"})


def run(made: SimpleNamespace, tmp_path: Path, *, draft: bool = True) -> BenchReport:
    session, under_test = made.session(), pair(tmp_path, draft=draft)
    peers = PeersAt(tmp_path / "peers", tmp_path / "models", tmp_path / "logs")
    prompts = bench_prompts(session, PROMPTS, under_test, SETTINGS)
    sessions = dict.fromkeys(TUNED_FOR, session)
    return run_bench(sessions, prompts, under_test, peers, SETTINGS, lambda _text, _share: None, command="tandem bench engine x")


def test_all_systems_of_all_parties_are_measured(made: SimpleNamespace, make_peer: MakePeer, tmp_path: Path) -> None:
    for name in ("transformers", "openvino_genai", "llama_cpp"):
        make_peer(name, source=json.dumps(DIGESTS))
    report = run(made, tmp_path)
    assert not report.absent
    assert {s.call.system.key for s in report.samples.all} == {s.key for s in SINGLE}
    assert len(report.samples.all) == 2 * (2 * len(SINGLE) + 4)
    assert all(row.value is not None for row in report.rows)
    assert report.facts["llama_cpp"] == {"version": "fake 1", "end_ids": "[2]"}
    assert report.facts["tandem"] == {"trt-tandem": "1"}


def test_peers_that_are_not_installed_are_left_out_with_the_command_that_installs_them(made: SimpleNamespace, tmp_path: Path) -> None:
    report = run(made, tmp_path)
    assert {name: error.finding.fix for name, error in report.absent.items()} == dict.fromkeys(
        ("transformers", "openvino_genai", "llama_cpp"), "make bench-peers"
    )
    assert report.failed == ()
    against_peers = [row for row in report.rows if row.against and not row.against.startswith("Tandem")]
    assert [row.result for row in against_peers] == 9 * ["not measured"]


def test_peers_that_break_are_failures_and_the_rest_is_measured(made: SimpleNamespace, make_peer: MakePeer, tmp_path: Path) -> None:
    make_peer("transformers", "raise SystemExit('no torch here')", source=json.dumps(DIGESTS))
    make_peer("openvino_genai", BREAKS_LATER, source=json.dumps(DIGESTS))
    report = run(made, tmp_path)
    assert set(report.failed) == {"transformers", "openvino_genai"}
    assert "worn out" in report.absent["openvino_genai"].finding.message
    assert report.absent["transformers"].last_lines == ("no torch here",)  # type: ignore[attr-defined]
    assert len(report.samples.of("tandem/plain").all) == 4


def test_a_pair_without_draft_asks_for_none(made: SimpleNamespace, tmp_path: Path) -> None:
    report = run(made, tmp_path, draft=False)
    assert {s.call.system.key for s in report.samples.all} == {"tandem/plain", "tandem/lookup", "tandem_long_context/plain"}


def test_as_many_prompts_of_each_kind_and_none_too_long(made: SimpleNamespace, tmp_path: Path) -> None:
    prompts = bench_prompts(made.session(), PROMPTS, pair(tmp_path), SETTINGS)
    assert [p.prompt.id for p in prompts] == ["chat-0", "code-0"]
    assert prompts[0].ids == (3, 5, 5)
    with pytest.raises(RefusedError, match="long-1") as caught:
        bench_prompts(made.session(), [Prompt("long-1", "chat", "a " * 59)], pair(tmp_path), SETTINGS)
    assert (caught.value.finding.found, caught.value.finding.needed) == ("59 tokens", "at most 58")


def test_engine_is_opened_without_reuse_and_with_these_threads(made: SimpleNamespace, tmp_path: Path) -> None:
    seen: list[Any] = []

    def opener(*given: Any) -> Any:
        seen.extend(given)
        return made.session()

    open_sessions(SimpleNamespace(kind="fake", open=opener), pair(tmp_path), SETTINGS)  # type: ignore[arg-type]
    folders, options = (tmp_path / "target", tmp_path / "draft"), EngineOptions(threads=1, max_draft_tokens=5, reuse=False)
    assert seen == [*folders, replace(options, tuned_for="decoding"), *folders, replace(options, tuned_for="long_context")]


def test_lane_without_sessions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="the engine plug-in fake cannot run") as caught:
        open_sessions(SimpleNamespace(kind="fake"), pair(tmp_path), SETTINGS)  # type: ignore[arg-type]
    assert caught.value.finding.code == "ENGINE-NO-SESSION"
