"""What people and machines see of a difference."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.cli.main import main
from builder.cli.plan_difference import MOST_ROWS, in_words, relative, show_difference
from builder.planner.difference import Change

KEYS = ("a" * 64, "b" * 64)


def plan(index: int, **sections: Any) -> dict[str, Any]:
    stage = {"name": "build-target", "key": KEYS[index], "inputs": {"request": {"kv_cache": ("int8", "fp8")[index]}, "digest": KEYS[index]}}
    return {"schema": 1, "ok": True, "stages": [stage], "findings": [], **sections}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    file = tmp_path / "old.json"
    file.write_text(json.dumps(plan(0, pair={"target": {"kv_cache": "int8"}}, memory={"pool_bytes": 2_000_000})))
    return file


def test_for_people(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = plan(1, pair={"target": {"kv_cache": "fp8"}}, memory={"pool_bytes": 1_000_000}, speed={"speedup": 2.0})
    new["findings"] = [{"code": "PAIR-X", "message": "Odd."}]
    show_difference(old, new, as_json=False)
    out = capsys.readouterr().out
    assert "target.kv_cache" in out
    assert "2.0 MB" in out
    assert "-50.0%" in out
    assert "changed: request.kv_cache, digest" in out
    assert "request.kv_cache: int8 -> fp8" in out
    assert "digest: aaaaaaaaaaaa… -> bbbbbbbbbbbb…" in out
    assert "new finding: PAIR-X: Odd." in out
    assert "not compared, because the old side does not state them: speed" in out


def test_nothing_changes(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_difference(old, json.loads(old.read_text()), as_json=False)
    out = capsys.readouterr().out
    assert out.startswith(f"nothing changes against {old}\n")
    assert "does not run" in out


def test_names_of_rows_are_shown_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rich would take [batch 4] for a style."""
    file = tmp_path / "old.json"
    file.write_text(json.dumps(plan(0, speed={"rows": [{"batch": 1, "speedup": 2.0}]})))
    show_difference(file, plan(0, speed={"rows": [{"batch": 1, "speedup": 1.5}, {"batch": 4, "speedup": 1.0}]}), as_json=False)
    out = capsys.readouterr().out
    assert "rows[batch 1].speedup" in out
    assert [cell.strip() for line in out.splitlines() if "[batch 4]" in line for cell in line.split("│")[1:4]] == [
        "rows[batch 4]",
        "none",
        "a row",
    ]


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
    new["memory"]["pool_bytes"] = 2_010_000
    show_difference(old, new, as_json=False)
    out = capsys.readouterr().out
    assert "pool_bytes" not in out
    assert "memory: 1 more changes, shown by --json" in out


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
        ("reuse", True, "True"),
        ("key", "c" * 64, "cccccccccccc…"),
        ("text", "word " * 12 + "word", "word " * 12 + "word"),
    ],
)
def test_in_words(field: str, value: object, words: str) -> None:
    assert in_words(field, value) == words


@pytest.mark.parametrize(("old", "new", "words"), [(4, 5, "+25.0%"), (0, 5, ""), (None, 5, ""), (True, False, ""), ("a", "b", "")])
def test_relative(old: object, new: object, words: str) -> None:
    assert relative(Change("a", old, new)) == words


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
