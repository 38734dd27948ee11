"""What a changed pair file changes: settings, figures, stages and the reason of each."""

from copy import deepcopy
from typing import Any

import pytest

from builder.errors import RefusedError
from builder.planner.difference import Change, StageChange, changed, difference

INPUTS = {"checkpoint": "c" * 64, "request": {"kv_cache": "int8", "options": {}}, "versions": {"exporter": "7"}}
PACKAGED = {"build-target": "t1", "build-draft": "d1", "lookup": True}


def plan() -> dict[str, Any]:
    """A plan of schema 1 with two engines."""
    return {
        "schema": 1,
        "ok": True,
        "name": "demo",
        "findings": [],
        "memory": {"target": {"pool_bytes": 100, "pool_tokens": 10}},
        "speed": {"rows": [{"batch": 1, "speedup": 2.0}, {"batch": 8, "speedup": 1.5}]},
        "stages": [
            {"name": "build-target", "key": "t1", "output": "engines/target", "inputs": deepcopy(INPUTS)},
            {"name": "build-draft", "key": "d1", "output": "engines/draft", "inputs": deepcopy(INPUTS)},
            {
                "name": "package",
                "key": "p1",
                "output": "model_repository",
                "inputs": {"build-target": "t1", "build-draft": "d1", "lookup": True},
            },
        ],
        "pair": {"name": "demo", "target": {"kv_cache": "int8"}, "limits": {"max_batch_size": 8}},
    }


def with_fp8_target() -> dict[str, Any]:
    """The same pair with another cache of the target, as the planner would plan it."""
    new = plan()
    new["pair"]["target"]["kv_cache"] = "fp8"
    new["memory"]["target"]["pool_bytes"] = 50
    new["stages"][0] |= {"key": "t2", "inputs": {**INPUTS, "request": {"kv_cache": "fp8", "options": {}}}}
    new["stages"][2] |= {"key": "p2", "inputs": {"build-target": "t2", "build-draft": "d1", "lookup": True}}
    return new


def stages(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[bool | None, str]]:
    return {stage.name: (stage.runs, stage.reason) for stage in difference(old, new).stages}


def test_a_plan_is_the_same_as_itself() -> None:
    found = difference(plan(), plan())
    assert found.same
    assert all(stage.runs is False and stage.reason == "same inputs" for stage in found.stages)


def test_one_setting_and_all_that_follows() -> None:
    found = difference(plan(), with_fp8_target())
    assert not found.same
    assert found.settings == (Change("target.kv_cache", "int8", "fp8"),)
    assert found.figures == {"memory": (Change("target.pool_bytes", 100, 50),), "speed": (), "cost": ()}
    assert found.stages == (
        StageChange("build-target", True, "changed: request.kv_cache", (Change("request.kv_cache", "int8", "fp8"),)),
        StageChange("build-draft", False, "same inputs"),
        StageChange("package", True, "made from build-target, which changed", (Change("build-target", "t1", "t2"),)),
    )


def test_as_dict() -> None:
    data = difference(plan(), with_fp8_target()).as_dict()
    assert set(data) == {"schema", "same", "settings", "memory", "speed", "cost", "findings", "stages", "unknown"}
    assert data["settings"] == [{"field": "target.kv_cache", "old": "int8", "new": "fp8"}]
    assert data["stages"][0]["inputs"] == [{"field": "request.kv_cache", "old": "int8", "new": "fp8"}]


def test_a_stage_and_its_predecessor_that_both_changed() -> None:
    new = with_fp8_target()
    new["stages"][2]["inputs"]["lookup"] = False
    assert stages(plan(), new)["package"] == (True, "changed: lookup; made from build-target, which changed")


def test_the_same_inputs_under_another_version() -> None:
    new = plan()
    new["stages"][0]["key"] = "t9"
    assert stages(plan(), new)["build-target"] == (True, "another version of Tandem")


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_plan_without_inputs(side: str) -> None:
    plans = {"old": plan(), "new": with_fp8_target()}
    for stage in plans[side]["stages"]:
        del stage["inputs"]
    found = stages(plans["old"], plans["new"])
    assert found["build-target"] == (True, f"its key changed; the {side} side does not say what it is made of")
    assert found["build-draft"] == (False, "same inputs")


def test_a_checkpoint_that_is_not_hashed_yet() -> None:
    new = plan()
    new["stages"][0] |= {"key": None, "inputs": {**INPUTS, "checkpoint": None}}
    new["stages"][2] |= {"key": None, "inputs": {"build-target": None, "build-draft": "d1", "lookup": True}}
    hidden = (None, "weights of a checkpoint are not hashed yet, so it is not known whether they are the same")
    assert stages(plan(), new) == {"build-target": hidden, "build-draft": (False, "same inputs"), "package": hidden}
    assert not difference(plan(), new).same


def test_a_change_is_certain_without_the_hash() -> None:
    new = with_fp8_target()
    new["stages"][0]["key"] = None
    new["stages"][0]["inputs"]["checkpoint"] = None
    new["stages"][2] |= {"key": None, "inputs": {"build-target": None, "build-draft": "d1", "lookup": True}}
    found = stages(plan(), new)
    assert found["build-target"] == (True, "changed: request.kv_cache")
    assert found["package"] == (True, "a stage that it takes from runs")


def test_stages_that_come_and_go() -> None:
    new = plan()
    new["stages"] = [new["stages"][0], {"name": "extra", "key": "e", "output": "", "inputs": {}}]
    found = stages(plan(), new)
    assert found["extra"] == (True, "not built yet")
    assert found["build-draft"] == (False, "no longer part of the plan")


def test_a_refused_plan_runs_nothing() -> None:
    new = plan() | {"ok": False, "stages": [], "findings": [{"code": "PAIR-X", "severity": "error", "message": "It cannot work."}]}
    found = difference(plan(), new)
    assert {stage.reason for stage in found.stages} == {"the new plan is refused"}
    assert found.findings_new == ("error [PAIR-X] It cannot work.",)
    assert difference(new, plan()).findings_gone == ("error [PAIR-X] It cannot work.",)


def test_a_finding_with_other_numbers_is_no_new_one() -> None:
    old = plan() | {"findings": [{"code": "SPEED-X", "field": "draft", "message": "old.yaml:3: draft: 0.9x"}]}
    new = plan() | {
        "findings": [{"code": "SPEED-X", "field": field, "message": f"new.yaml:3: {field}: 0.8x"} for field in ("draft", "target")]
    }
    found = difference(old, new)
    assert (found.findings_new, found.findings_gone) == (("finding [SPEED-X] new.yaml:3: target: 0.8x",), ())


def test_a_warning_that_became_an_error_is_a_new_finding() -> None:
    found = {"code": "MEM-X", "field": "draft", "message": "Full."}
    sides = [plan() | {"findings": [found | {"severity": severity}]} for severity in ("warning", "error")]
    assert difference(*sides).findings_new == ("error [MEM-X] Full.",)


def test_the_same_plan_without_hashes() -> None:
    unhashed = plan()
    for stage in unhashed["stages"]:
        stage["key"] = None
    found = difference(unhashed, deepcopy(unhashed))
    assert {(stage.runs, stage.reason) for stage in found.stages} == {
        (None, "nothing is known to have changed; weights are hashed when they are built")
    }
    assert found.same_as_far_as_known
    assert not found.same
    assert not difference(unhashed, with_fp8_target()).same_as_far_as_known


def test_rows_are_compared_by_their_first_column() -> None:
    new = plan()
    new["speed"]["rows"] = [{"batch": 1, "speedup": 2.0}, {"batch": 4, "speedup": 1.8}, {"batch": 8, "speedup": 1.6}]
    assert difference(plan(), new).figures["speed"] == (
        Change("rows[batch 8].speedup", 1.5, 1.6),
        Change("rows[batch 4]", None, {"batch": 4, "speedup": 1.8}),
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": [1, 2]}, {"a": [1, 3]}, [Change("a", [1, 2], [1, 3])]),
        ({"a": None}, {}, []),
        ({"a": None}, {"a": {"b": 1}}, [Change("a.b", None, 1)]),
        ({"a": []}, {"a": [{"b": 1}]}, [Change("a[b 1]", None, {"b": 1})]),
        ({"a": {}}, {"a": None}, []),
        ({"a": [{"b": 1, "c": 1}, {"b": 1, "c": 2}]}, {"a": [{"b": 1, "c": 1}, {"b": 1, "c": 3}]}, [Change("a[1].c", 2, 3)]),
        ({"a": 1}, {"a": {"b": 1}}, [Change("a", 1, {"b": 1})]),
        ({"a": True}, {"a": False}, [Change("a", True, False)]),
    ],
    ids=["plain list", "null is nothing", "section put in", "rows put in", "empty is nothing", "rows alike", "other kind", "switch"],
)
def test_changed(old: Any, new: Any, expected: list[Change]) -> None:
    assert list(changed(old, new)) == expected


def test_sections_that_the_old_side_lacks_are_named() -> None:
    old = {"schema": 1, "stages": [{"name": "build-target", "key": "t1"}]}
    found = difference(old, plan())
    assert found.unknown == ("settings", "memory", "speed")
    assert (found.settings, found.findings_new) == ((), ())


def test_another_schema_is_refused() -> None:
    with pytest.raises(RefusedError) as error:
        difference(plan() | {"schema": 0}, plan())
    assert error.value.finding.code == "PLAN-DIFF-SCHEMA"
    assert str(error.value) == "the old plan is of schema 0, this version writes schema 1"
