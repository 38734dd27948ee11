"""`tandem plan` as a person and as a machine sees it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.cli.columns import columns
from builder.cli.main import main

Write = Callable[..., Path]
SHORT = "limits: {max_sequence_tokens: 1024, max_input_tokens: 512}\nplanning: {workload: {input_tokens: 100, output_tokens: 100}}\n"


@pytest.fixture
def pair(write_checkpoint: Write, tmp_path: Path) -> Callable[[str], Path]:
    target, draft = write_checkpoint("target", layers=16), write_checkpoint("draft", layers=1)

    def write(more: str = "") -> Path:
        file = tmp_path / "pair.yaml"
        file.write_text(f"name: pair\ntarget: {{checkpoint: {target}}}\ndraft: {{checkpoint: {draft}}}\n{SHORT}{more}")
        return file

    return write


def plan(file: Path, *options: str) -> int:
    return main(["--quiet", "plan", str(file), "--build-root", str(file.parent / "build"), *options])


def test_the_answer_comes_first_and_findings_last(pair: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(pair()) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].startswith("pair: accepted: ")
    assert lines[1].startswith("  memory: ")
    assert lines[2].startswith("  speed: ")
    assert "settings" not in lines
    titles = ("memory of host", "speed, predicted by roofline", "stages")
    assert [next(i for i, line in enumerate(lines) if line.startswith(title)) for title in titles] == sorted(
        next(i for i, line in enumerate(lines) if line.startswith(title)) for title in titles
    )


def test_settings_are_shown_when_asked_for(pair: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    plan(pair(), "--settings")
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert rows["limits.max_input_tokens"][1:] == ["pair", "file", "512"]
    assert rows["gates.lossless.prompts"][1:] == ["default", "24"]


def test_a_refused_plan_says_so_first_and_last(pair: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(pair("speculation: {acceptance: logits}\n")) == 2
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0].startswith("pair: refused: 1 error")
    assert "speed, predicted" not in shown.out
    last = shown.err.splitlines()
    assert last[-1].startswith("refused: 1 error")
    severities = [line.split()[0] for line in last if " [" in line]
    assert severities == sorted(severities, key=("info", "warning", "error").index)
    assert severities[-1] == "error"


def test_machines_get_an_object_for_a_broken_pair_file_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text("name: pair\ntarget: {chekpoint: x}\ndraft: {method: none}\n")
    assert plan(file, "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["ok"]) == (1, False)
    assert {f["code"] for f in found["findings"]} == {"PAIR-MISSING-KEY", "PAIR-UNKNOWN-KEY"}


def test_one_of_diff_and_sweep(pair: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    file = pair()
    assert plan(file, "--diff", str(file), "--sweep", "k=1,2") == 2
    assert "PLAN-DIFF-SWEEP" in capsys.readouterr().err


def test_columns_keep_every_cell_whole() -> None:
    rows = [["row", "kv", "tokens"], ["1", "fp8", "1,000"], ["22", "A-LONG-CODE"]]
    assert columns(rows, left=2) == ["row  kv           tokens", "1    fp8           1,000", "22   A-LONG-CODE"]
