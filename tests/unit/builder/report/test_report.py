"""One report, three files: numbers arrive, nothing half-written, nothing that a parser refuses."""

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from builder.report.junit import render_junit
from builder.report.machine import machine_facts, package_versions
from builder.report.markdown import render_markdown
from builder.report.model import Report, json_ready, make_report
from builder.report.write import write_atomic, write_reports


@dataclass(frozen=True)
class Gate:
    name: str
    passed: bool
    value: float | None = 1.0
    threshold: float | None = 1.0
    unit: str = "x"
    summary: str = "fine"
    details: dict[str, Any] = field(default_factory=dict)


SPEED = Gate("speed", True, 1.5, 1.2, details={"kinds": {"code": {"speedup": 2.0}}, "interval_95": [1.2, 1.8], "prompts": [{"id": "a"}]})
ACCEPTANCE = Gate("acceptance", True, details={"kinds": {"code": {"acceptance_rate": 0.5}}})
LOSSLESS = Gate("lossless", False, 1.0, 0.0, "prompts", "prompt a|b <differs> \x00", {"differences": [{"prompt_id": "a", "position": 3}]})


def report(*gates: Gate) -> Report:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    facts = {"durations_s": {"speed": 2.5}, "commands": ("tandem run pair.yaml",), "machine": {"cpu": "a"}, "plan": {"ok": True}}
    return make_report("demo", gates, created_at=moment, versions={"numpy": "1"}, **facts)


def test_kinds_are_joined_over_gates() -> None:
    assert report(SPEED, ACCEPTANCE).kinds == {"code": {"speedup": 2.0, "acceptance_rate": 0.5}}


def test_one_failed_gate_or_none_at_all_is_a_failure() -> None:
    assert report(SPEED).verdict == "pass"
    assert report(SPEED, LOSSLESS).verdict == "fail"
    assert report().verdict == "fail"


def test_files_are_written_and_parse(tmp_path: Path) -> None:
    files = write_reports(report(SPEED, ACCEPTANCE, LOSSLESS), tmp_path / "build")
    data = json.loads(files.json.read_text())
    assert (data["schema"], data["verdict"], data["created_at"]) == (1, "fail", "2026-01-02T03:04:05+00:00")
    assert [g["name"] for g in data["gates"]] == ["speed", "acceptance", "lossless"]
    assert data["plan"] == {"ok": True}
    ElementTree.parse(files.junit)
    assert sorted(p.name for p in (tmp_path / "build").iterdir()) == ["junit.xml", "report.json", "report.md"]


def test_junit_has_a_case_for_each_gate_and_numbers_in_the_failure() -> None:
    root = ElementTree.fromstring(render_junit(report(SPEED, LOSSLESS)))
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    cases = root.findall("testsuite/testcase")
    assert [(c.get("name"), c.get("time"), c.find("failure") is not None) for c in cases] == [
        ("speed", "2.500", False),
        ("lossless", "0.000", True),
    ]
    text = cases[1].findtext("failure")
    assert text == "prompt a|b <differs> ?\nvalue: 1.0\nthreshold: 0.0\nunit: prompts"


def test_a_gate_without_a_value_was_not_evaluated() -> None:
    root = ElementTree.fromstring(render_junit(report(Gate("speed", False, None))))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "not evaluated"


def test_markdown_says_what_happened() -> None:
    page = render_markdown(report(SPEED, ACCEPTANCE, LOSSLESS))
    assert page.startswith("# demo: fail\n")
    assert "| lossless | **FAIL** | 1 | 0 | prompts |" in page
    assert "| code | 2.00 | 50.0% |" in page
    assert "| interval 95 | 1.2, 1.8 |" in page
    assert "| a | 3 |" in page
    assert "tandem run pair.yaml" in page


def test_json_holds_no_nan() -> None:
    assert json_ready({"a": math.nan, 1: (math.inf, 2.0), "p": Path("x"), "s": "t"}) == {"a": None, "1": [None, 2.0], "p": "x", "s": "t"}


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    write_atomic(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(file, "\ud800")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_machine_facts(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("processor : 0\nmodel name\t: Fast CPU\n")
    (tmp_path / "mem").write_text("MemTotal:  1048576 kB\n")
    facts = machine_facts(tmp_path / "cpu", tmp_path / "mem")
    assert (facts["cpu"], facts["memory"]) == ("Fast CPU", "1.0 GiB")
    assert "memory" not in machine_facts(tmp_path / "none", tmp_path / "none")


def test_versions_of_absent_packages_are_left_out() -> None:
    assert list(package_versions(["pytest", "no-such-package-here"])) == ["pytest"]
