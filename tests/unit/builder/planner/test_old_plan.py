"""An old plan is found in a file, a build folder, or beside a deployed model repository."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from builder.errors import RefusedError
from builder.planner.old_plan import read_old_plan

PLAN = {"schema": 1, "ok": True, "pair": {"name": "demo"}, "stages": [{"name": "package", "key": "wanted"}]}
MANIFEST = {"schema": 1, "name": "demo", "stages": {"package": "listed"}, "files": {}}
RECORD = {"stage": "package", "key": "built", "inputs": {"lookup": True}, "files": {}, "made": "today"}


def write(file: Path, data: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


def key(place: Path) -> str:
    return str(read_old_plan(place)["stages"][0]["key"])


def test_a_file(tmp_path: Path) -> None:
    assert read_old_plan(write(tmp_path / "old.json", PLAN)) == PLAN


def test_in_a_build_folder_what_was_built_goes_before_what_was_planned(tmp_path: Path) -> None:
    write(tmp_path / "plan.json", PLAN)
    assert key(tmp_path) == "wanted"
    write(tmp_path / "stages" / "package.json", RECORD)
    old = read_old_plan(tmp_path)
    assert old["stages"] == [{"name": "package", "key": "built", "inputs": {"lookup": True}}]
    assert old["pair"] == {"name": "demo"}


def test_a_record_that_cannot_be_read_is_no_stage(tmp_path: Path) -> None:
    write(tmp_path / "plan.json", PLAN)
    write(tmp_path / "stages" / "a.json", "{")
    write(tmp_path / "stages" / "b.json", {"stage": "package"})
    assert key(tmp_path) == "wanted"


def test_records_alone(tmp_path: Path) -> None:
    write(tmp_path / "stages" / "package.json", RECORD)
    assert read_old_plan(tmp_path) == {"schema": 1, "stages": [{"name": "package", "key": "built", "inputs": {"lookup": True}}]}


def test_a_manifest_gives_the_stages(tmp_path: Path) -> None:
    write(tmp_path / "manifest.json", MANIFEST)
    assert read_old_plan(tmp_path) == {"schema": 1, "stages": [{"name": "package", "key": "listed"}]}


@pytest.mark.parametrize(("name", "data"), [("plan.json", PLAN), ("manifest.json", MANIFEST)])
def test_beside_a_model_repository(tmp_path: Path, name: str, data: object) -> None:
    write(tmp_path / "model_repository" / "ensemble" / "config.pbtxt", "")
    write(tmp_path / name, data)
    assert key(tmp_path / "model_repository") in ("wanted", "listed")


def test_only_a_model_repository_is_looked_beside(tmp_path: Path) -> None:
    write(tmp_path / "plan.json", PLAN)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RefusedError) as error:
        read_old_plan(tmp_path / "empty")
    assert error.value.finding.code == "PLAN-DIFF-MISSING"
    assert str(error.value) == f"there is no plan in {tmp_path / 'empty'}"


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="there is no file or folder"):
        read_old_plan(tmp_path / "none")


STAGE = {"name": "package", "key": "k"}
ODD = (
    *({"schema": 1, "stages": [STAGE], "findings": findings} for findings in (["x"], 5, "x", [{"code": ["x"]}], [{"message": 5}])),
    *({"schema": 1, "stages": [STAGE | {name: value}]} for name, value in (("name", ["a"]), ("key", {}), ("inputs", 5), ("name", None))),
    *({"schema": 1, "stages": [STAGE], name: [5]} for name in ("pair", "memory", "speed", "cost")),
    {"schema": 1, "stages": {"package": ["a"]}},
    '{"schema": 1, "stages": [], "memory": ' + '{"a":' * 100_000,
    '{"schema": 1, "stages": [], "memory": ' + '{"a":' * 60 + "1" + "}" * 61,
)


@pytest.mark.parametrize(
    "data",
    ["{", "[]", {"findings": []}, {"schema": 1, "stages": [{"name": "package"}]}, {"schema": 1, "stages": 5}, *ODD],
    ids=lambda data: str(data)[:60],
)
def test_files_that_are_no_plan(tmp_path: Path, data: object) -> None:
    file = write(tmp_path / "old.json", data)
    with pytest.raises(RefusedError) as error:
        read_old_plan(file)
    assert error.value.finding.code == "PLAN-DIFF-FORMAT"
    assert str(error.value) == f"{file} is no plan"
    assert error.value.finding.fix


@pytest.mark.parametrize("stage", [["a"], None, 5])
def test_a_record_of_another_kind_is_no_stage(tmp_path: Path, stage: object) -> None:
    write(tmp_path / "plan.json", PLAN)
    write(tmp_path / "stages" / "package.json", RECORD | {"stage": stage})
    write(tmp_path / "stages" / "b.json", '{"stage": ' + "[" * 100_000)
    assert key(tmp_path) == "wanted"


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="File name too long") as error:
        read_old_plan(tmp_path / ("a" * 300))
    assert error.value.finding.code == "PLAN-DIFF-MISSING"


def test_a_pipe(tmp_path: Path) -> None:
    """`--diff <(tandem plan OLD.yaml --json)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps(PLAN)))
    writer.start()
    assert read_old_plan(pipe) == PLAN
    writer.join()


def test_a_device_is_no_plan() -> None:
    with pytest.raises(RefusedError) as error:
        read_old_plan(Path("/dev/zero"))
    assert error.value.finding.code == "PLAN-DIFF-MISSING"
