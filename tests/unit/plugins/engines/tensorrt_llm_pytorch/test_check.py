"""Rules of the PyTorch flow: the full sentence of each, one pair that it refuses and one that it accepts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.api import Finding, RefusedError
from plugins.engines.tensorrt_llm_pytorch import ENGINE
from tests.unit.plugins.engines.tensorrt_llm_pytorch.conftest import A100, B200, DRAFT, PAIR, RTX, Judge, facts, request

ALWAYS = {"LANE-PLAN-ONLY", "RULE-FIXED-DRAFTS", "RULE-GREEDY", "RULE-REUSE-DRAFT"}
"""What is good to know of every pair with a draft model on this lane."""


def test_draft_length_is_fixed() -> None:
    """As RULE-FIXED-DRAFTS says, and the speed plan with it."""
    assert not ENGINE.adapts_draft_length


def of_code(found: list[Finding], code: str) -> Finding:
    (finding,) = [f for f in found if f.code == code]
    return finding


def errors(found: list[Finding]) -> set[str]:
    return {f.code for f in found if f.severity == "error"}


def test_a_pair_that_the_lane_serves(judge: Judge) -> None:
    found = judge()
    assert errors(found) == set()
    assert {f.code for f in found} == ALWAYS


# code, severity, field, what refuses, the sentence, what is accepted
RULES: list[tuple[str, str, str, dict[str, Any], str, dict[str, Any]]] = [
    (
        "RULE-TOPOLOGY",
        "error",
        "serve.topology",
        {"topology": "orchestrated"},
        "engine.kind tensorrt_llm_pytorch serves target and draft in one process, as one Triton model that takes text: there is no second "
        "engine that tensorrt_llm_bls could ask.",
        {"topology": "single"},
    ),
    (
        "RULE-ONE-KV",
        "error",
        "draft.kv_cache",
        {"target__kv_cache": "fp8"},
        "One kv_cache_config covers both models of the process, and its dtype cannot be fp8 for the target and auto for the draft.",
        {"both__kv_cache": "fp8"},
    ),
    (
        "RULE-ONE-SPLIT",
        "error",
        "draft.tensor_parallel",
        {"draft__tensor_parallel": 1},
        "One group of processes holds both models: the draft is split over 2 chips like the target, not over 1.",
        {"both__tensor_parallel": 1, "chip_count": 1},
    ),
    (
        "RULE-STORED-ENGINE",
        "error",
        "target.checkpoint",
        {"target_facts": facts("target", DRAFT, kind="tensorrt_llm", weights="FP8", tensor_parallel=2)},
        "The target is a tensorrt_llm folder; the LLM API loads Hugging Face folders, quantized by ModelOpt or not.",
        {"target_facts": facts("target", DRAFT, kind="modelopt", weights="FP8")},
    ),
    (
        "RULE-BATCHED-TOKENS",
        "error",
        "limits.max_batched_tokens",
        {"target__max_batched_tokens": 95},
        "Verifying 5 draft tokens and one more for 16 sequences is a pass of 96 tokens, and the limit is 95: some sequences would wait in "
        "every round.",
        {"target__max_batched_tokens": 96},
    ),
    (
        "RULE-BLOCK-FIXED",
        "warning",
        "kv_cache.tokens_per_block",
        {"both__tokens_per_block": 64, "both__release": "1.1.0"},
        "kv_cache_config of TensorRT-LLM 1.0 has no tokens_per_block and blocks of 32 tokens; whether 1.1.0 takes 64 is not known, and an "
        "unknown key stops the server.",
        {"both__tokens_per_block": 64, "both__release": "1.2.1"},
    ),
    (
        "RULE-ACCEPTANCE-TOKENS",
        "error",
        "speculation.acceptance",
        {"acceptance": "logits"},
        "The LLM API compares draft tokens by id; speculative_config has no acceptance by logits up to release 1.2.",
        {"acceptance": "tokens"},
    ),
    (
        "RULE-FIXED-DRAFTS",
        "info",
        "speculation.max_draft_tokens",
        {},
        "max_draft_len is fixed when the server starts: every request gets 5 draft tokens a round, also where they do not pay. "
        "draft.lookup beside a draft model, speculation.adaptive and a request's num_draft_tokens have no effect on this lane.",
        {"method": "ngram", "draft": None, "draft_facts": None},
    ),
    (
        "RULE-GREEDY",
        "info",
        "gates.lossless",
        {},
        "Greedy answers with and without drafts agree up to ties in the last bits, because verification runs other kernels; sampled "
        "answers cannot be compared token by token.",
        {"method": "none", "draft": None, "draft_facts": None},
    ),
    (
        "RULE-REUSE-DRAFT",
        "info",
        "kv_cache.reuse",
        {},
        "Upstream switched block reuse off beside a draft model (pull request 5448), and since when it is back is not known: prompts with "
        "a common prefix may be computed again.",
        {"reuse": False},
    ),
    (
        "RULE-DRAFT-KV",
        "warning",
        "draft.kv_cache",
        {"both__kv_cache": "fp8"},
        "The draft's cache is FP8 like the target's, because one setting covers both; a draft with a quantized cache proposes worse: 2.7 "
        "accepted tokens became 1.8 in one report.",
        {"both__kv_cache": "bf16"},
    ),
]


@pytest.mark.parametrize(("code", "severity", "field", "refused", "message", "accepted"), RULES, ids=[rule[0] for rule in RULES])
def test_every_rule(
    judge: Judge, code: str, severity: str, field: str, refused: dict[str, Any], message: str, accepted: dict[str, Any]
) -> None:
    found = of_code(judge(**refused), code)
    assert (found.severity, found.field, found.message) == (severity, field, message)
    assert found.fix
    assert code not in {f.code for f in judge(**accepted)}


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"both__release": "0.21.0"}, {"RULE-RELEASE-RANGE"}),
        ({"both__release": "1.0.0"}, set()),
        ({"both__kv_cache": "fp8"}, set()),
        ({"both__kv_cache": "fp8", "chip": A100, "both__weights": "none"}, set()),  # FP8 caches from Ampere on
        ({"chip": A100}, {"RULE-WEIGHTS-CHIP"}),
        ({"both__kv_cache": "nvfp4"}, {"RULE-KV-CHIP"}),
        ({"both__kv_cache": "nvfp4", "chip": RTX}, {"RULE-KV-CHIP"}),
        ({"both__kv_cache": "nvfp4", "chip": B200}, set()),
        ({"both__kv_cache": "nvfp4", "chip": B200, "both__release": "1.1.0"}, {"RULE-KV-RELEASE"}),
        ({"both__weights": "nvfp4"}, {"RULE-WEIGHTS-CHIP"}),
        ({"both__weights": "nvfp4", "chip": B200}, set()),
        ({"both__weights": "int4_awq"}, set()),
        ({"both__weights": "int4_awq", "chip": B200}, {"RULE-WEIGHTS-CHIP"}),
        ({"host_offload_bytes": 2**30}, set()),
        ({"method": "ngram", "draft": None, "draft_facts": None}, set()),
        ({"target__kv_cache": "bf16"}, set()),  # the dtype auto of both where no checkpoint says otherwise
    ],
)
def test_release_chip_and_precision(judge: Judge, changes: dict[str, Any], refused: set[str]) -> None:
    assert errors(judge(**changes)) == refused


@pytest.mark.parametrize(("field", "word", "code"), [("kv_cache", "int8", "RULE-KV-LANE"), ("weights", "int8_sq", "RULE-WEIGHTS-LANE")])
def test_words_that_the_lane_does_not_have(field: str, word: str, code: str) -> None:
    assert [f.code for f in ENGINE.check(replace(request("target"), **{field: word}))] == [code]
    assert ENGINE.check(request("target")) == []


def test_everything_is_said_at_once(judge: Judge) -> None:
    found = errors(judge(topology="orchestrated", acceptance="logits", draft__tensor_parallel=1, target__kv_cache="fp8"))
    assert found == {"RULE-TOPOLOGY", "RULE-ACCEPTANCE-TOKENS", "RULE-ONE-SPLIT", "RULE-ONE-KV"}


def test_both_models_are_sized_as_torch_holds_them() -> None:
    whole = ENGINE.memory(replace(request("draft"), weights="none", tensor_parallel=1), DRAFT)
    assert whole.weights_bytes == 2 * DRAFT.parameters
    assert whole.kv_cache == "bf16"
    assert ENGINE.build_needs(request("draft"), DRAFT).host_memory_bytes == 2 * DRAFT.parameters


def test_the_lane_is_planned_and_not_built(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"plans engine\.kind tensorrt_llm_pytorch; it does not build or run it yet") as caught:
        ENGINE.build(PAIR.target, tmp_path, lambda _what, _share: None)
    assert caught.value.finding.code == "LANE-PLAN-ONLY"
    assert ENGINE.server_needs().backends == {}
