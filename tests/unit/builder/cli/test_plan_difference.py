"""What people and machines see of a difference."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.cli.main import main
from builder.cli.plan_difference import MOST_ROWS, in_words, show_difference

KEYS = ("a" * 64, "b" * 64)


def plan(index: int, **sections: Any) -> dict[str, Any]:
    stage = {"name": "build-target", "key": KEYS[index], "inputs": {"request": {"kv_cache": ("int8", "fp8")[index]}, "digest": KEYS[index]}}
    return {"schema": 1, "ok": True, "stages": [stage], "findings": [], **sections}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "old.json"
    file.write_text(json.dumps(plan(0, pair={"target": {"kv_cache": "int8"}}, memory={"target": {"pool_bytes": 2_000_000}})))
    return file


def test_for_people(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = plan(1, pair={"target": {"kv_cache": "fp8"}}, memory={"target": {"pool_bytes": 1_000_000}}, speed={"speedup": 2.0})
    new["findings"] = [{"code": "PAIR-X", "severity": "error", "message": "Odd."}]
    show_difference(old, new, as_json=False)
    assert capsys.readouterr().out == (
        "settings: what changes\n"
        "  setting           old  new\n"
        "  target.kv_cache  int8  fp8\n"
        "\n"
        "stages\n"
        "  stage         what happens  why\n"
        "  build-target  runs          kv cache: int8 -> fp8\n"
        "                              digest: aaaaaaaaaaaa… -> bbbbbbbbbbbb…\n"
        "\n"
        "memory: what changes\n"
        "  figure                  old     new  change\n"
        "  cache of the target  2.0 MB  1.0 MB  -50.0%\n"
        "\n"
        "new error [PAIR-X] Odd.\n"
        "not compared, because the old side does not state them: speed\n"
    )


def test_nothing_changes(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_difference(old, json.loads(old.read_text()), as_json=False)
    out = capsys.readouterr().out
    assert out.startswith(f"nothing changes against {old}\n")
    assert "does not run" in out


def test_weights_that_nobody_hashed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same plan twice, before anything is built: it is not called a change, nor the same."""
    stage = {"name": "build-target", "key": None, "inputs": {"digest": None}}
    plain = {"schema": 1, "ok": True, "stages": [stage], "findings": []}
    file = tmp_path / "old.json"
    file.write_text(json.dumps(plain))
    show_difference(file, plain, as_json=False)
    out = capsys.readouterr().out
    assert out.startswith(f"nothing is known to have changed against {file};")
    assert "nothing is known to have changed; weights are hashed when they are built" in out.splitlines()[3]


def test_rows_of_tables_are_named_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that only one side has is shown by its figures; what is no figure for people is counted."""
    file, row = tmp_path / "old.json", {"batch": 1, "speedup": 2.0, "plain_tokens_per_s": 50.0, "cycle_s": 0.02, "anchor": "x"}
    file.write_text(json.dumps(plan(0, speed={"rows": [row]}, memory={"load_orders": [[{"role": "a"}]]})))
    rows = [row | {"speedup": 1.5, "anchor": "y"}, row | {"batch": 4, "plain_tokens_per_s": 1234.5, "draft_tokens": 3}]
    show_difference(file, plan(0, speed={"rows": rows}, memory={"load_orders": [[{"role": "b"}]]}), as_json=False)
    assert capsys.readouterr().out.partition("\n\n")[2] == (
        "memory: 1 more change, shown by --json\n"
        "speed: what changes\n"
        "  figure                              old       new  change\n"
        "  batch 1: speed-up                 2.00x     1.50x\n"
        "  batch 4: speed-up                  none     2.00x\n"
        "  batch 4: tokens/s without drafts   none     1,234\n"
        "  batch 4: one round of drafts       none  20.00 ms\n"
        "  batch 4: best draft length         none         3\n"
        "\n"
    )


def test_long_tables_are_cut(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = json.loads(old.read_text())
    new["pair"] |= {f"setting{i}": i for i in range(MOST_ROWS + 5)}
    show_difference(old, new, as_json=False)
    out = capsys.readouterr().out
    assert f"setting{MOST_ROWS - 1}" in out
    assert f"setting{MOST_ROWS} " not in out
    assert "settings: 5 more changes, shown by --json" in out


def test_small_changes_of_figures_take_no_row(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = json.loads(old.read_text())
    new["memory"]["target"]["pool_bytes"] = 2_010_000
    show_difference(old, new, as_json=False)
    out = capsys.readouterr().out
    assert "memory: what changes" not in out
    assert "memory: 1 more change, shown by --json" in out


def test_for_machines(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_difference(old, plan(1, pair={}), as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["old"], data["same"]) == (1, str(old), False)
    assert data["settings"] == [{"field": "target.kv_cache", "old": "int8", "new": None}]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("a", None, "none"),
        ("pool_bytes", 1_234_567_890, "1,234.6 MB"),
        ("rate", 0.123456, "0.1235"),
        ("tokens", 16640, "16640"),
        ("reuse", True, "true"),
        ("options", {"a": 1}, "a section"),
        ("key", "c" * 64, "cccccccccccc…"),
        ("text", "word " * 12 + "word", "word " * 12 + "word"),
    ],
)
def test_in_words(field: str, value: object, words: str) -> None:
    assert in_words(field, value) == words


def test_the_whole_command(
    write_checkpoint: Callable[..., Path], write_pair: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    text = f"name: demo\ntarget: {{checkpoint: {target}}}\ndraft: {{checkpoint: {draft}}}\n"
    arguments = ["plan", str(write_pair(text)), "--build-root", str(tmp_path / "build"), "--json"]
    assert main(arguments) == 0
    old = tmp_path / "old.json"
    old.write_text(capsys.readouterr().out)
    write_pair(f"{text}limits: {{max_batch_size: 4}}\n")
    assert main([*arguments, "--diff", str(old)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"] == [{"field": "limits.max_batch_size", "old": 8, "new": 4}]
    assert {"field": "needed_tokens", "old": 16640, "new": 8320} in found["memory"]
    assert [(stage["name"], stage["runs"]) for stage in found["stages"]] == [
        ("build-target", True),
        ("build-draft", True),
        ("package", True),
    ]


def test_no_plan_there_is_refused(
    write_checkpoint: Callable[..., Path], write_pair: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_pair(f"name: demo\ntarget: {{checkpoint: {write_checkpoint('target')}}}\ndraft: {{method: none}}\n")
    assert main(["plan", str(file), "--build-root", str(tmp_path / "build"), "--diff", str(tmp_path / "none")]) == 2
    assert "[PLAN-DIFF-MISSING]" in capsys.readouterr().err


def test_a_pipe_is_read(old: Path) -> None:
    read, write = os.pipe()
    os.write(write, old.read_bytes())
    os.close(write)
    show_difference(Path(f"/dev/fd/{read}"), json.loads(old.read_text()), as_json=True)
    os.close(read)
