"""Every mismatch between plan and engines is found before anything is written, all at once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.errors import FindingsError, RefusedError
from builder.packaging.checks import check, read_engine, sequence_limit, shared_vocab_size
from builder.packaging.plan import PackagePlan


def codes(plan: PackagePlan) -> list[str]:
    with pytest.raises(FindingsError) as caught:
        check(plan)
    assert all(finding.message and finding.found for finding in caught.value.findings)
    return [finding.code for finding in caught.value.findings]


def test_a_fitting_pair_passes(plan: PackagePlan):
    target, draft = check(plan)
    assert target.end_ids == (2, 7)
    assert draft is not None


@pytest.mark.parametrize(
    ("role", "engine", "code"),
    [
        ("target", {"max_draft_len": 4}, "PKG-DRAFT-LENGTH"),
        ("target", {"max_batch_size": 4}, "PKG-BATCH"),
        ("draft", {"max_batch_size": 4}, "PKG-BATCH"),
        ("draft", {"tokens_per_block": 64}, "PKG-BLOCK"),
        ("target", {"kv": None}, "PKG-KV-CACHE"),
    ],
)
def test_engine_mismatches(plan: PackagePlan, write_engine: Callable[..., Path], role: str, engine: dict[str, Any], code: str):
    write_engine(role, **engine)
    assert codes(plan) == [code]


def test_the_target_has_the_vocabulary_of_the_plan(plan: PackagePlan, write_engine: Callable[..., Path]):
    write_engine("target", vocab_size=500)
    assert codes(plan) == ["PKG-VOCAB-SIZE"]


@pytest.mark.parametrize(("draft", "shared"), [(512, 512), (500, 500), (520, 512), (None, None)])
def test_widths_may_differ_by_padding(plan: PackagePlan, write_engine: Callable[..., Path], draft: int | None, shared: int | None):
    """Whether the ids mean the same is for the plan to know; only those that both engines have are drafted."""
    write_engine("draft", vocab_size=draft)
    assert shared_vocab_size(*check(plan)) == shared


def test_a_target_alone_shares_nothing(plan: PackagePlan):
    assert shared_vocab_size(*check(replace(plan, draft_engine_dir=None))) is None


def test_plan_mismatches(plan: PackagePlan, tmp_path: Path):
    assert codes(replace(plan, draft_pool_tokens=0)) == ["PKG-POOL"]
    assert codes(replace(plan, tokenizer_dir=tmp_path)) == ["PKG-TOKENIZER"]


def test_several_at_once(plan: PackagePlan, write_engine: Callable[..., Path]):
    write_engine("target", max_draft_len=1, max_batch_size=1)
    assert sorted(codes(plan)) == ["PKG-BATCH", "PKG-DRAFT-LENGTH"]


@pytest.mark.parametrize("content", [None, "{"])
def test_a_missing_record_is_refused(tmp_path: Path, content: str | None):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(RefusedError) as caught:
        read_engine(tmp_path)
    assert caught.value.finding.code == "PKG-ENGINE-RECORD"


@pytest.mark.parametrize(("engine", "pool", "limit"), [({}, 1024, 128), ({"max_input_len": 99}, 1024, 100), ({}, 64, 64)])
def test_longest_sequence(plan: PackagePlan, write_engine: Callable[..., Path], engine: dict[str, Any], pool: int, limit: int):
    write_engine("target", **engine)
    plan = replace(plan, target_pool_tokens=pool)
    assert sequence_limit(plan, check(plan)[0]) == limit
