"""Rows of a sweep: figures, refusals, order."""

import dataclasses
import json
from collections.abc import Callable
from datetime import date

import pytest

from builder.errors import Finding, RefusedError
from builder.planner.sweep import Evaluate, PlanLike, run_sweep, sweep, with_settings
from builder.spec import Pair
from tests.unit.builder.planner.conftest import speed
from tests.unit.builder.planner.sweep.conftest import FakeMemory, FakePlan

MakePair = Callable[..., Pair]


def test_figures_of_a_row(make_pair: MakePair, evaluate: Evaluate) -> None:
    price = {"per_chip_hour": 3.6, "date": date(2026, 11, 1)}
    pair = make_pair(planning={"price": price, "workload": {"input_tokens": 900, "output_tokens": 90}})
    (row,) = sweep(pair, {"limits.max_batch_size": (4,)}, evaluate).rows
    figures = row.figures
    assert figures is not None
    assert (figures.capacity_tokens, figures.batch, figures.provider) == (200_000, 4, "roofline")
    assert figures.sequences == 200_000 // 1024, "990 tokens, 5 drafts and one more, in blocks of 32"
    assert figures.tokens_per_s == pytest.approx(4 / 1.04 * 2.21)
    assert figures.tokens_per_s_per_user == pytest.approx(1 / 1.04 * 2.21)
    assert figures.speedup == pytest.approx(2.21)
    assert figures.per_million == pytest.approx(0.001 / figures.tokens_per_s * 1e6)


def test_a_goal_decides_the_batch(make_pair: MakePair) -> None:
    rates = speed((1, 50, 150), (8, 400, 800), (64, 2000, 2600))
    pair = make_pair(planning={"goal": {"tokens_per_s_per_user": 90}}, limits={"max_batch_size": 64})

    def batch(axes: dict[str, tuple[int, ...]], asked: Pair = pair) -> int:
        (row,) = sweep(asked, axes, lambda _pair: FakePlan(True, (), FakeMemory(1000), rates)).rows
        assert row.figures is not None
        return row.figures.batch

    assert batch({"speculation.max_draft_tokens": (5,)}) == 8
    assert batch({"limits.max_batch_size": (64,)}) == 8, "the limit is compared, at the batch that meets the goal"
    assert batch({"speculation.max_draft_tokens": (5,)}, make_pair()) == 64


def test_adaptive_deployments_do_not_draft_where_it_loses(make_pair: MakePair, evaluate: Evaluate) -> None:
    axes = {"limits.max_batch_size": (80,), "speculation.adaptive": (True, False)}
    adaptive, stubborn = (row.figures for row in sweep(make_pair(), axes, evaluate).rows)
    assert adaptive is not None
    assert stubborn is not None
    assert adaptive.speedup == 1
    assert stubborn.speedup < 1
    assert adaptive.tokens_per_s == pytest.approx(80 / 1.8)


def test_refused_rows_stay_with_their_codes(make_pair: MakePair, evaluate: Evaluate) -> None:
    result = run_sweep(make_pair(), ["kv=fp8,nvfp4", "batch=0,4"], evaluate)
    assert [(row.number, row.ok, row.codes) for row in result.rows] == [
        (1, False, ("PAIR-VALUE",)),
        (2, True, ()),
        (3, False, ("PAIR-VALUE",)),
        (4, False, ("RULE-KV-NVFP4",)),
    ]
    assert result.rows[3].reason == "an NVFP4 cache needs the sm_100 family"
    assert result.rows[3].label == "nvfp4 KV, batch 4"
    assert result.recommended == 2


def test_reasons_do_not_point_at_the_line_of_another_value(make_pair: MakePair, evaluate: Evaluate) -> None:
    text = "pair.yaml:9: target.kv_cache: no such cache"
    error = Finding("RULE-KV", "error", text, "target.kv_cache", file="/home/me/pair.yaml", line=9)

    def refuse(pair: Pair) -> PlanLike:
        return dataclasses.replace(evaluate(pair), ok=False, findings=(error,))

    assert sweep(make_pair(), {"target.kv_cache": ("fp8",)}, refuse).rows[0].reason == "target.kv_cache: no such cache"


def test_a_refusal_that_is_raised_is_a_row_too(make_pair: MakePair) -> None:
    def raise_it(_pair: Pair) -> PlanLike:
        raise RefusedError("CHIP-UNKNOWN", "no chip is called h300")

    (row,) = sweep(make_pair(), {"hardware.chip": ("h300",)}, raise_it).rows
    assert (row.codes, row.reason) == (("CHIP-UNKNOWN",), "no chip is called h300")


def test_figures_of_a_refused_plan_are_not_shown(make_pair: MakePair, evaluate: Evaluate) -> None:
    """The plan works out memory and speed of many a pair that it refuses."""
    error = Finding("MEM-FIT", "error", "no room")
    (row,) = sweep(
        make_pair(), {"limits.max_batch_size": (4,)}, lambda p: dataclasses.replace(evaluate(p), ok=False, findings=(error,))
    ).rows
    assert (row.ok, row.codes, row.figures) == (False, ("MEM-FIT",), None)


def test_other_chips_have_no_price(make_pair: MakePair, evaluate: Evaluate) -> None:
    pair = make_pair(planning={"price": {"per_chip_hour": 3.6, "date": date(2026, 11, 1)}})
    result = run_sweep(pair, ["chip=h200_sxm,b200_sxm"], evaluate)
    own, other = (row.figures for row in result.rows)
    assert own is not None
    assert other is not None
    assert own.per_million is not None
    assert other.per_million is None


def test_json_has_a_schema_and_survives_a_round_trip(make_pair: MakePair, evaluate: Evaluate) -> None:
    result = run_sweep(make_pair(), ["kv=fp8,nvfp4", "batch=1,4"], evaluate).as_dict()
    assert json.loads(json.dumps(result)) == result
    assert (result["schema"], result["kind"], result["name"]) == (1, "prediction", "pair")
    assert result["axes"] == {"target.kv_cache": ["fp8", "nvfp4"], "limits.max_batch_size": [1, 4]}
    assert result["rows"][0].keys() >= {"number", "settings", "ok", "codes", "capacity_tokens", "sequences", "tokens_per_s", "speedup"}
    assert "capacity_tokens" not in result["rows"][3]
    assert result["recommendation"].startswith(f"Take row {result['recommended']} ")


def test_progress_is_told_and_default_axes_are_taken(make_pair: MakePair, evaluate: Evaluate) -> None:
    told: list[tuple[str, float | None]] = []
    result = run_sweep(make_pair(), [], lambda p: _without_int8(p, evaluate), lambda text, share: told.append((text, share)))
    assert len(told) == len(result.rows) == 2 * 4 * 3 + 1, "a precision that is always refused is one row"
    assert told[0] == ("planning (fp8 KV, k 2, batch 1)", 0.0)
    assert told[-1][1] == pytest.approx(24 / 25)


def test_what_is_given_beside_all_is_kept(make_pair: MakePair, evaluate: Evaluate) -> None:
    result = run_sweep(make_pair(), ["kv=fp8", "all", "planning.acceptance=0.5,0.6"], evaluate)
    assert list(result.axes) == ["target.kv_cache", "speculation.max_draft_tokens", "limits.max_batch_size", "planning.acceptance"]
    assert (result.axes["target.kv_cache"], result.axes["planning.acceptance"]) == (("fp8",), (0.5, 0.6))


def test_a_precision_that_a_rule_refuses_is_one_row_of_all(make_pair: MakePair, evaluate: Evaluate) -> None:
    result = run_sweep(make_pair(), ["all"], lambda p: _without_int8(p, evaluate))
    refused = [row for row in result.rows if not row.ok]
    assert [(row.settings, row.codes, row.label) for row in refused] == [({"target.kv_cache": "int8"}, ("RULE-KV-INT8",), "int8 KV")]
    assert result.axes["target.kv_cache"] == ("fp8", "bf16", "int8")
    typed = run_sweep(make_pair(), ["kv=int8", "all"], lambda p: _without_int8(p, evaluate))
    assert {row.codes for row in typed.rows} == {("RULE-KV-INT8",)}, "what was asked for is tried as asked"

    def no_room(pair: Pair) -> PlanLike:
        if pair.spec.target.kv_cache == "bf16" and pair.spec.limits.max_batch_size > 1:
            raise RefusedError("MEM-POOL", "no room")
        return _without_int8(pair, evaluate)

    rows = run_sweep(make_pair(), ["all"], no_room).rows
    assert [row.settings["target.kv_cache"] for row in rows].count("bf16") == 12, "another batch may have room"


def test_rows_that_a_limit_does_not_change_are_told(make_pair: MakePair, evaluate: Evaluate) -> None:
    def best_is_five(pair: Pair) -> PlanLike:
        k = min(pair.spec.speculation.max_draft_tokens, 5)
        return evaluate(with_settings(pair, {"speculation.max_draft_tokens": k}))

    result = run_sweep(make_pair(), ["k=4,5,8", "batch=1,4"], best_is_five)
    assert result.notes == (
        "speculation.max_draft_tokens is a limit, and the best draft length lies below it: rows 3 = 5 (5 drafted), rows 4 = 6 (5 drafted)",
    )
    assert result.as_dict()["notes"] == list(result.notes)
    rates = speed((1, 50, 150), (8, 400, 800), (64, 2000, 2600))
    goal = make_pair(planning={"goal": {"tokens_per_s_per_user": 90}})
    alike = sweep(goal, {"limits.max_batch_size": (16, 64)}, lambda _pair: FakePlan(True, (), FakeMemory(1000), rates))
    assert alike.notes == ("limits.max_batch_size is a limit, and the batch that meets the goal lies below it: rows 1 = 2 (batch 8)",)


def test_a_single_row_is_named_by_what_was_set(make_pair: MakePair, evaluate: Evaluate) -> None:
    assert [row.label for row in run_sweep(make_pair(limits={"max_batch_size": 16}), ["batch=1"], evaluate).rows] == ["batch 1"]
    assert [row.label for row in run_sweep(make_pair(), ["batch=1", "k=2"], evaluate).rows] == ["batch 1, k 2"]
    assert [row.label for row in run_sweep(make_pair(), ["batch=1", "k=2,4"], evaluate).rows] == ["k 2", "k 4"]


def _without_int8(pair: Pair, evaluate: Evaluate) -> PlanLike:
    if pair.spec.target.kv_cache == "int8":
        raise RefusedError("RULE-KV-INT8", "no")
    return evaluate(pair)


def test_a_plan_that_fails_without_a_reason_is_a_fault(make_pair: MakePair, evaluate: Evaluate) -> None:
    class Silent:
        ok = False
        findings: tuple[Finding, ...] = ()
        memory = None
        speed = None

    with pytest.raises(AssertionError, match="says why"):
        sweep(make_pair(), {"limits.max_batch_size": (1,)}, lambda _pair: Silent())
