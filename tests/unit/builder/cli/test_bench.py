"""`tandem bench engine`: what is refused, exit codes, what is written."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.bench.measure import Answers, Run, Sample
from builder.bench.order import BenchPrompt, Call
from builder.bench.report import BenchReport, BenchSettings, make_report
from builder.bench.systems import SINGLE
from builder.cli.main import main
from builder.errors import StageError, TandemError
from builder.gates.prompts import Prompt

Write = Callable[..., Path]


@pytest.fixture
def pair_file(write_checkpoint: Write, tmp_path: Path) -> Path:
    file = tmp_path / "pair.yaml"
    file.write_text(f"name: demo\ntarget: {{checkpoint: {write_checkpoint('target')}}}\ndraft: {{method: ngram}}\n")
    return file


def run(file: Path, *options: str) -> int:
    return main(["-q", "bench", "engine", str(file), "--build-root", str(file.parent / "build"), *options])


def report_of(lookup_s: float, absent: dict[str, TandemError]) -> BenchReport:
    prompt = (BenchPrompt(Prompt("p", "chat", "text"), (1, 2)),)
    calls = ((SINGLE[0], 1.0), (SINGLE[1], lookup_s))
    samples = [Sample(Call(system, prompt, 0), Answers(((1, 2, 3),), seconds)) for system, seconds in calls]
    facts = {"name": "demo", "settings": BenchSettings(), "single": SINGLE, "concurrent": (), "facts": {}, "machine": {}, "command": "x"}
    return make_report(Run(samples=samples), absent, **facts)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, dict[str, TandemError]], list[BenchSettings]]:
    """Let the next runs find this speed of lookup and these absent parties; returns the settings that they were called with."""

    def let(lookup_s: float, absent: dict[str, TandemError]) -> list[BenchSettings]:
        seen: list[BenchSettings] = []

        def bench_pair(_session: object, *, settings: BenchSettings, **_: object) -> BenchReport:
            seen.append(settings)
            return report_of(lookup_s, absent)

        monkeypatch.setattr("builder.pipeline.bench.bench_pair", bench_pair)
        return seen

    return let


def test_what_is_not_built_is_refused_with_the_way_out(pair_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(pair_file) == 2
    error = capsys.readouterr().err
    assert "[NOT-BUILT]" in error
    assert "build-target: not built yet" in error
    assert "tandem run pair.yaml" in error


@pytest.mark.parametrize("options", [("--repeats", "0"), ("--new-tokens", "0"), ("--concurrency", "-1"), ("--threads", "0"), ("--nope",)])
def test_numbers_out_of_range_are_refused(pair_file: Path, options: tuple[str, ...]) -> None:
    assert run(pair_file, *options) == 2


def test_result_is_written_as_json_and_page(
    pair_file: Path, measured: Callable[..., list[BenchSettings]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = measured(0.5, {})
    page = tmp_path / "page.md"
    assert run(pair_file, "--json", "--output", str(page), "--repeats", "4", "--concurrency", "0") == 0
    assert seen == [BenchSettings(repeats=4, concurrency=0)]
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed == json.loads((tmp_path / "build" / "demo" / "bench-engine.json").read_text())
    assert "| Tandem, prompt lookup | Tandem, target only | mix | 2.00x" in page.read_text()


def test_table_is_shown_without_json(
    pair_file: Path, measured: Callable[..., list[BenchSettings]], capsys: pytest.CaptureFixture[str]
) -> None:
    measured(0.5, {})
    assert run(pair_file) == 0
    out = capsys.readouterr().out
    assert "2.00x" in out
    assert "bench-engine.json" in out


@pytest.mark.parametrize(("lookup_s", "check", "code"), [(2.0, False, 0), (2.0, True, 1), (0.5, True, 0)])
def test_only_check_makes_a_missed_line_a_failure(
    pair_file: Path, measured: Callable[..., list[BenchSettings]], lookup_s: float, check: bool, code: int
) -> None:
    measured(lookup_s, {})
    assert run(pair_file, *(["--check"] if check else [])) == code


def test_a_peer_that_broke_is_a_failed_run_with_its_last_words(
    pair_file: Path, measured: Callable[..., list[BenchSettings]], capsys: pytest.CaptureFixture[str]
) -> None:
    measured(0.5, {"llama_cpp": StageError("BENCH-PEER-DIED", "llama_cpp ended with signal 9", last_lines=("killed",))})
    assert run(pair_file) == 4
    error = capsys.readouterr().err
    assert "[BENCH-PEER-DIED] llama_cpp ended with signal 9" in error
    assert "| killed" in error
