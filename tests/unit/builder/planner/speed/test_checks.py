"""The full sentence of each finding of the speed plan, and that a good plan has none."""

from dataclasses import replace
from typing import Any

import pytest

from builder.planner.speed import BatchRow, SpeedPlan, check_speed
from builder.planner.speed.constants import Overheads
from builder.spec.model import WorkloadSpec
from tests.unit.builder.planner.speed.conftest import spec_of


def row(batch: int, speedup: float, draft_tokens: int = 5) -> BatchRow:
    return BatchRow(batch, 0.020, 0.022, 0.002, 0.034, 2.9, 50.0 * batch, 50.0 * batch * speedup, draft_tokens, 0.42)


GOOD = SpeedPlan(
    provider="aiconfigurator",
    error_band=0.15,
    speedup_error_band=0.15,
    acceptance=0.8,
    acceptance_source="planning.acceptance",
    overheads=Overheads(8e-4, 1e-3, ""),
    rows=(row(1, 1.8), row(16, 1.5)),
    saturation=row(16, 1.5),
    stop_batch=90,
    anchors=(),
    pool_sequences=200,
    disagreement=1.2,
)


def test_good_plan_has_nothing_to_say() -> None:
    assert list(check_speed(spec_of(), GOOD)) == []


FOUND: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "SPEED-ACCEPTANCE",
        "info",
        {"acceptance": 0.7, "acceptance_source": "assumed"},
        "The speed-up is predicted for an acceptance of 0.70, which is assumed; at batch 1 drafting wins from 0.42 on.",
    ),
    (
        "SPEED-DRAFT-LOSES",
        "warning",
        {"stop_batch": 0, "rows": (row(1, 0.91),), "saturation": row(16, 0.7)},
        "Drafting loses at every batch: 0.91x at batch 1 with 5 draft tokens, for a cycle takes 1.70 target steps and yields 2.90 tokens; "
        "it would need an acceptance of 0.42, and has 0.80.",
    ),
    (
        "SPEED-STOP-BATCH",
        "info",
        {"stop_batch": 9, "saturation": row(16, 0.83)},
        "Above batch 9 drafting is slower than not drafting (0.83x at batch 16); speculation.adaptive stops it there.",
    ),
    (
        "SPEED-LONGER-DRAFT",
        "info",
        {"longer_draft": (8, 2.1)},
        "At batch 1 and acceptance 0.80 the best draft has 8 tokens (2.10x); the limit of 5 reaches 1.80x.",
    ),
    (
        "SPEED-SHORTER-DRAFT",
        "warning",
        {"adaptive": False, "lane_adapts": False, "shorter_draft": (3, 2.0)},
        "At batch 1 and acceptance 0.80 the best draft has 3 tokens (2.00x); the fixed length of 5 reaches 1.80x.",
    ),
    (
        "SPEED-SHORTER-DRAFT",
        "info",
        {"shorter_draft": (2, 1.8)},
        "At acceptance 0.80 no batch takes more than 2 draft tokens; engines, pools and their head-room are made for the limit of 5.",
    ),
    (
        "SPEED-CALIBRATION",
        "warning",
        {"doubts": ("the runs are odd",)},
        "The calibration runs are doubtful: the runs are odd.",
    ),
    (
        "SPEED-CONCURRENCY",
        "info",
        {"batch_limit": "serve.max_concurrent_requests"},
        "The orchestrator works on 64 requests at once, so no batch is larger, though the engines and their pools take 16.",
    ),
    (
        "SPEED-WORKLOAD",
        "info",
        {"workload": WorkloadSpec(input_tokens=300, output_tokens=212)},
        "Speed and capacity are predicted for requests of 300 + 212 tokens: the default of 1000 + 500 does not fit prompts of 1536 and "
        "sequences of 4096 tokens.",
    ),
    (
        "SPEED-DISAGREE",
        "warning",
        {"disagreement": 2.34},
        "Aiconfigurator and the roofline differ by 2.3 times in the target's step time; more than 2 times means that one of them does not "
        "know this pair.",
    ),
    (
        "SPEED-UNVERIFIED",
        "warning",
        {"unverified": ("nobody published it",), "other_step_s": 0.0105},
        "Step times of aiconfigurator are unverified for this pair (at batch 1 20.00 ms by aiconfigurator, 10.50 ms by the roofline): "
        "nobody published it; rates may be 15% off.",
    ),
    (
        "SPEED-ROOFLINE",
        "info",
        {"provider": "roofline", "error_band": 0.3, "notes": {"target": "aiconfigurator-core is not installed"}},
        "Step times come from the chip's published rates, good within 30%, since aiconfigurator-core is not installed.",
    ),
]


@pytest.mark.parametrize(("code", "severity", "change", "message"), FOUND)
def test_each_finding_says_its_whole_sentence(code: str, severity: str, change: dict[str, Any], message: str) -> None:
    found = list(check_speed(spec_of(), replace(GOOD, **change)))
    assert [(f.code, f.severity, f.message) for f in found] == [(code, severity, message)]
    assert found[0].fix
    assert found[0].field


def test_what_is_not_adaptive_is_a_warning() -> None:
    found = list(
        check_speed(spec_of(speculation={"adaptive": False}), replace(GOOD, adaptive=False, stop_batch=9, saturation=row(16, 0.83)))
    )
    assert found[0].severity == "warning"
    assert found[0].message == (
        "Above batch 9 drafting is slower than not drafting (0.83x at batch 16); and nothing stops it, since speculation.adaptive is false."
    )
    assert found[0].fix == "set speculation.adaptive: true, or limits.max_batch_size: 9"


def test_pair_without_drafts_hears_nothing_of_drafts() -> None:
    spec = spec_of(draft={"method": "none", "checkpoint": None})
    assert list(check_speed(spec, replace(GOOD, acceptance_source="assumed", stop_batch=0))) == []


def test_fixed_lane_is_not_told_to_adapt() -> None:
    plan = replace(GOOD, adaptive=False, lane_adapts=False, stop_batch=9, saturation=row(16, 0.83))
    found = list(check_speed(spec_of(engine={"kind": "tensorrt_llm_pytorch"}), plan))
    assert [f.severity for f in found] == ["warning"]
    assert found[0].message == (
        "Above batch 9 drafting is slower than not drafting (0.83x at batch 16); and nothing stops it, since the draft length of "
        "tensorrt_llm_pytorch is fixed."
    )
    assert "adaptive" not in found[0].fix


def test_way_out_of_a_draft_that_loses_is_a_shorter_one() -> None:
    """16 draft tokens reach 0.77x, 5 would reach 1.28x."""
    plan = replace(GOOD, adaptive=False, lane_adapts=False, stop_batch=0, rows=(row(1, 0.77, 16),), shorter_draft=(5, 1.28))
    found = {f.code: f for f in check_speed(spec_of(speculation={"max_draft_tokens": 16}), plan)}
    assert found["SPEED-DRAFT-LOSES"].fix == "set speculation.max_draft_tokens: 5 (1.28x)"
    assert "the best draft has 5 tokens (1.28x); the fixed length of 16 reaches 0.77x" in found["SPEED-SHORTER-DRAFT"].message


def test_acceptance_that_cannot_win_and_a_published_one() -> None:
    never = replace(row(1, 0.5), break_even_acceptance=None)
    plan = replace(GOOD, acceptance_source="assumed", rows=(never,), published_acceptance="this pair accepts 0.89 on code")
    found = next(f for f in check_speed(spec_of(), plan) if f.code == "SPEED-ACCEPTANCE")
    assert found.message.endswith("which is assumed; at batch 1 drafting wins at no acceptance.")
    assert found.fix == "measure it on your prompts, and write it as planning.acceptance (this pair accepts 0.89 on code)"


def test_prompt_lookup_says_what_its_gain_depends_on() -> None:
    spec = spec_of(draft={"method": "ngram", "checkpoint": None})
    found = list(check_speed(spec, replace(GOOD, acceptance=0.4, acceptance_source="assumed")))
    assert found[0].message == (
        "The speed-up is predicted for an acceptance of 0.40, which is assumed; at batch 1 drafting wins from 0.42 on; prompt lookup gains "
        "as much as the answer repeats the prompt, in published runs 1.33x to 1.96x."
    )


@pytest.mark.parametrize(
    ("most", "message"),
    [
        (
            96,
            "has 96 tokens and leaves no room for prompts in a pass: limits.max_batched_tokens is 96.",
        ),
        (80, "has 96 tokens and takes more than one pass: limits.max_batched_tokens is 80."),
    ],
)
def test_step_that_fills_a_pass_is_said(most: int, message: str) -> None:
    found = list(check_speed(spec_of(limits={"max_batched_tokens": most}), GOOD))
    assert [(f.code, f.severity, f.message) for f in found] == [
        ("SPEED-NO-ROOM", "warning", f"From batch 16 on a step with 5 draft tokens {message}")
    ]
    assert list(check_speed(spec_of(limits={"max_batched_tokens": 97}), GOOD)) == []
