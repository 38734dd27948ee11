"""What people see of a sweep and of the cost."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from builder.cli.main import main
from builder.cli.sweep import show_cost, show_sweep
from builder.pipeline import session
from builder.planner.cost import HardwareAdvice, plan_cost
from builder.planner.sweep import run_sweep
from builder.spec import Pair
from tests.unit.builder.planner.conftest import make_pair, speed
from tests.unit.builder.planner.sweep.conftest import evaluate_by_law

__all__ = ["make_pair"]
PRICE = {"per_chip_hour": 3.6, "date": date(2026, 11, 1), "source": "an offer"}


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(capsys: pytest.CaptureFixture[str], make: Callable[..., Pair], axes: list[str], **sections: Any) -> str:
    show_sweep(run_sweep(make(**sections), axes, evaluate_by_law))
    return capsys.readouterr().out


def cells(text: str) -> list[list[str]]:
    """Body rows: those of a sweep begin with their number, those of the cost table with the load."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines() if re.match(r"\d|  (batch|saturation)", line)]


def test_every_row_is_shown_refused_ones_with_their_code(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, make_pair, ["kv=fp8,nvfp4", "batch=1,4"], planning={"price": PRICE})
    rows = cells(text)
    assert [row[0] for row in rows] == ["1+", "2*", "3", "4"]
    assert rows[1] == ["2*", "fp8", "4", "200,000", "130", "4", "2.1", "8", "2.21x", "117.65"]
    assert rows[3] == ["4", "nvfp4", "4", "RULE-KV-NVFP4"]
    assert "USD/1M" in text
    assert "RULE-KV-NVFP4: an NVFP4 cache needs the sm_100 family" in text
    assert "Take row 2 (fp8 KV, batch 4)" in text.replace("\n", " ")
    assert "step times from roofline (error band 30%)" in text
    assert "the accuracy gate of `tandem validate` judges that" in text


def test_columns_are_aligned_and_nothing_is_cut_off(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, make_pair, ["kv=fp8,nvfp4", "k=2,4", "batch=1,16"], planning={"price": PRICE})
    head, *rows = text.splitlines()[2:11]
    assert head == "row  kv     k  batch  KV tokens  requests  users  tok/s/user  tok/s  speed-up  USD/1M"
    assert rows[1] == "2    fp8    2  16       200,000       132     16         0.9     15     1.09x   66.51"
    assert rows[7] == "8    nvfp4  4  16     RULE-KV-NVFP4"


def test_without_a_price_there_is_no_money(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, make_pair, ["batch=1,4"])
    assert "/1M" not in text
    assert "accuracy" not in text, "no precision was swept"
    assert [len(row) for row in cells(text)] == [8, 8]


def test_other_chips_have_no_price_and_that_is_said(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, make_pair, ["chip=h200_sxm,b200_sxm"], planning={"price": PRICE})
    assert [row[-1] for row in cells(text)][1] == "-"
    assert "the price is that of the pair file's own chip" in text


def test_step_times_from_two_sources_are_a_note(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    def evaluate(pair: Pair) -> Any:
        plan = evaluate_by_law(pair)
        measured = pair.spec.hardware.chip == "h200_sxm"
        return dataclasses.replace(plan, speed=dataclasses.replace(plan.speed, provider="measured", error_band=0.05)) if measured else plan

    show_sweep(run_sweep(make_pair(), ["chip=h200_sxm,b200_sxm"], evaluate))
    text = capsys.readouterr().out
    assert "step times from measured (error band 5%), roofline (error band 30%)\nrows whose step times come from different sources" in text


def test_cost_with_a_price(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    spec = make_pair(planning={"price": PRICE, "engineering_cost": 7200}).spec
    show_cost(plan_cost(spec, speed((1, 50, 150), (64, 2000, 1600)), 1), HardwareAdvice((), "None of 4 chips meets it."))
    text = capsys.readouterr().out
    assert "cost, predicted at 3.60 USD per chip hour of 2026-11-01, an offer" in text
    assert cells(text) == [
        ["batch 1", "180,000", "540,000", "20.00", "6.67"],
        ["saturation (batch 64)", "7.2 M", "5.76 M", "0.500", "0.625"],
    ]
    assert (
        "at batch 1 an hour with the draft makes what costs 10.80 USD without it; the engineering cost of 7,200 USD is paid back in 1,000 "
        "hours or 540 M tokens\n"
        "at saturation the draft never pays back the engineering cost of 7,200 USD\n"
        "None of 4 chips meets it.\n"
    ) in text


def test_cost_without_a_price(make_pair: Callable[..., Pair], capsys: pytest.CaptureFixture[str]) -> None:
    show_cost(plan_cost(make_pair(draft={"method": "none", "checkpoint": None}).spec, speed((1, 50, 50)), 1))
    text = capsys.readouterr().out
    assert "cost, predicted; add planning.price to see money" in text
    assert cells(text) == [["batch 1", "180,000", "-"], ["saturation", "180,000", "-"]]


def test_a_plot_that_cannot_be_is_refused_before_anything_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(tmp_path / "missing.yaml"), "--sweep", "all", "--plot", str(tmp_path / "a.pdf")]) == 2
    assert "[SWEEP-PLOT-FILE]" in capsys.readouterr().err


def test_a_difference_looks_for_no_hardware(write_checkpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pair.yaml"
    target = write_checkpoint("target")
    file.write_text(f"name: goal\ntarget: {{checkpoint: {target}}}\ndraft: {{method: ngram}}\nplanning: {{goal: {{tokens_per_s: 1}}}}\n")
    old = tmp_path / "old.json"
    with old.open("w") as stream, contextlib.redirect_stdout(stream):
        assert main(["-q", "plan", str(file), "--build-root", str(tmp_path), "--json"]) == 0
    assert json.loads(old.read_text())["hardware"]["choices"]
    monkeypatch.setattr(session, "plan_many", lambda *_: pytest.fail("planned for nothing"))
    assert main(["-q", "plan", str(file), "--build-root", str(tmp_path), "--diff", str(old)]) == 0
