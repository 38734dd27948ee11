"""A checkpoint that is a built TensorRT-LLM engine: what it was built for against what is asked."""

from collections.abc import Callable
from typing import Any

import pytest

from builder.checkpoint import Checkpoint
from builder.errors import Finding

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]
MODE = {"speculative_decoding_mode": 2, "max_draft_len": 10}


def only(findings: list[Finding], code: str) -> Finding:
    assert [(finding.code, finding.severity) for finding in findings] == [(code, "error")]
    return findings[0]


@pytest.fixture
def engine(checkpoint: MakeCheckpoint) -> MakeCheckpoint:
    return lambda name, **build: checkpoint(name, stored="tensorrt_llm_engine", config={"build_config": build})


def test_case_2_more_draft_tokens_than_the_engine_verifies(engine: MakeCheckpoint, check: Check) -> None:
    target = engine("target", **MODE)
    finding = only(check(target, speculation={"max_draft_tokens": 12}), "PAIR-DRAFT-LENGTH")
    assert finding.message == (
        "speculation.max_draft_tokens is 12, but the engine of the target models/target was built to verify at most 10 (max_draft_len 10)."
    )
    assert finding.fix == (
        "set speculation.max_draft_tokens to 10 or less, or build the engine again with "
        "--speculative_decoding_mode draft_tokens_external --max_draft_len 12"
    )
    assert check(target, speculation={"max_draft_tokens": 10}) == []


@pytest.mark.parametrize("build", [{}, {"max_draft_len": 56}, {"max_draft_len": 56, "speculative_decoding_mode": 4}])
def test_case_2_an_engine_without_the_mode_verifies_none(engine: MakeCheckpoint, check: Check, build: dict[str, Any]) -> None:
    target = engine("target", **build)
    finding = only(check(target, speculation={"max_draft_tokens": 12}), "PAIR-DRAFT-LENGTH")
    assert finding.message == (
        "speculation.max_draft_tokens is 12, but the engine of the target models/target was built without speculative_decoding_mode "
        "draft_tokens_external, so it verifies 0."
    )
    assert (finding.found, finding.needed) == ("12", "<= 0")
    rebuild = "build the engine again with --speculative_decoding_mode draft_tokens_external --max_draft_len 12"
    assert finding.fix == f"set draft.method: none, or {rebuild}"
    assert check(target, speculation={"max_draft_tokens": 12}, draft={"method": "none"}) == []


def test_the_mode_may_be_a_word(engine: MakeCheckpoint, check: Check) -> None:
    target = engine("target", **MODE | {"speculative_decoding_mode": "draft_tokens_external"})
    assert check(target, speculation={"max_draft_tokens": 10}) == []


def test_a_draft_engine_verifies_nothing(engine: MakeCheckpoint, checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target"), engine("draft")) == []


def test_limits_of_the_engine(engine: MakeCheckpoint, check: Check) -> None:
    target = engine("target", **MODE, max_batch_size=8, max_input_len=1024, max_seq_len=2048)
    finding = only(check(target, limits={"max_batch_size": 16, "max_input_tokens": 1024}), "PAIR-ENGINE-LIMIT")
    assert finding.message == "limits.max_batch_size is 16, but the engine of the target models/target was built with max_batch_size 8."
    assert finding.fix == "set limits.max_batch_size to 8 or less, or build the engine again with --max_batch_size 16"
    assert check(target, limits={"max_batch_size": 8, "max_input_tokens": 1024}) == []


def test_a_checkpoint_that_is_no_engine(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target", config={"build_config": {"max_draft_len": 0}}), speculation={"max_draft_tokens": 12}) == []
