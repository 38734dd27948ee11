"""Rules of the engine lane: each refuses with its full sentence, and lets a sound pair pass."""

from collections.abc import Mapping
from typing import Any

import pytest

from builder.api import StoredFormat
from plugins.engines.tensorrt_llm import ENGINE
from tests.unit.plugins.nvidia.pairs import Changes, alone, deployment, request, with_code

Row = tuple[str, str, Changes, Changes, str]


def options(**values: Any) -> Changes:
    """Both engines with these engine.options."""
    return {"both": {"options": values}}


# code, field, refused, accepted, sentence
ROWS: list[Row] = [
    (
        "RULE-KV-INT8-REUSE",
        "target.kv_cache",
        {"target": {"kv_cache": "int8"}},
        alone(target={"kv_cache": "int8"}, reuse=False),
        "INT8 KV of the target switches paged context FMHA off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-KV-INT8-REUSE",
        "draft.kv_cache",
        {"draft": {"kv_cache": "int8"}},
        {"draft": {"kv_cache": "bf16"}},
        "INT8 KV of the draft switches paged context FMHA off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-KV-INT8-REUSE",
        "target.kv_cache",
        alone(target={"kv_cache": "int8"}),
        alone(target={"kv_cache": "fp8"}),
        "INT8 KV of the target switches paged context FMHA off, without it there is no block reuse, and kv_cache.reuse: true would be "
        "dropped with a warning.",
    ),
    (
        "RULE-KV-FP8-WEIGHTS",
        "target.kv_cache",
        {"target": {"weights": "none"}},
        {"target": {"weights": "fp8"}},
        "FP8 KV keeps paged context FMHA only with FP8, W4A8_AWQ or NVFP4 weights, and the target's are unquantized: the builder switches "
        "it off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-KV-FP8-WEIGHTS",
        "target.kv_cache",
        {"target": {"weights": "int4_awq"}},
        {"target": {"weights": "int4_awq"}, "target_stored": StoredFormat("modelopt", "W4A8_AWQ", "FP8", "good")},
        "FP8 KV keeps paged context FMHA only with FP8, W4A8_AWQ or NVFP4 weights, and the target's are W4A16_AWQ: the builder switches it "
        "off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-KV-FP8-WEIGHTS",
        "target.kv_cache",
        options(fp8_rowwise=True),
        {"target": {"options": {"fp8_rowwise": True}, "kv_cache": "bf16"}},
        "FP8 KV keeps paged context FMHA only with FP8, W4A8_AWQ or NVFP4 weights, and the target's are FP8_PER_CHANNEL_PER_TOKEN: the "
        "builder switches it off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-FMHA-OFF",
        "engine.options.use_paged_context_fmha",
        options(use_paged_context_fmha=False),
        options(use_paged_context_fmha=True),
        "use_paged_context_fmha is off, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-FMHA-OFF",
        "engine.options.context_fmha",
        options(context_fmha=False),
        alone(**options(context_fmha=False), reuse=False),
        "With context_fmha off there is no paged context FMHA, without it there is no block reuse, without reuse no draft tokens.",
    ),
    (
        "RULE-CHUNKED",
        "limits.max_batched_tokens",
        {"both": {"options": {"chunked_context": False}, "max_batched_tokens": 4096}},
        {"both": {"options": {"chunked_context": False}, "max_batched_tokens": 8191}},
        "Prompts have up to 8191 tokens, more than a pass of 4096 takes, so they must be read in chunks; but chunked_context is off.",
    ),
    (
        "RULE-CHUNKED",
        "limits.max_batched_tokens",
        alone(target={"kv_cache": "int8", "max_batched_tokens": 4096}, reuse=False),
        alone(target={"kv_cache": "int8"}, reuse=False),
        "Prompts have up to 8191 tokens, more than a pass of 4096 takes, so they must be read in chunks; but INT8 KV of the target "
        "switches paged context FMHA off, and chunks need it.",
    ),
    (
        "RULE-CHUNKED-ON",
        "limits.max_batched_tokens",
        {"both": {"max_batched_tokens": 4096}, "max_prompt_tokens": 6144},
        {},
        "Prompts have up to 6144 tokens (limits.max_input_tokens), and the sequences that the orchestrator sends as a prompt in each round "
        "grow to 8191; what is longer than a pass of 4096 is read in chunks: chunked context is on at run time.",
    ),
    (
        "RULE-CONTEXT-LOGITS",
        "engine.options.gather_context_logits",
        options(gather_context_logits=True),
        alone(**options(gather_context_logits=True), reuse=False),
        "Context logits and draft tokens exclude each other: the builder stops on both together.",
    ),
    (
        "RULE-CONTEXT-LOGITS",
        "engine.options.gather_context_logits",
        alone(**options(gather_context_logits=True)),
        alone(**options(gather_context_logits=False)),
        "An engine that returns context logits reuses no blocks: the runtime drops kv_cache.reuse with a warning.",
    ),
    (
        "RULE-OPTION-RELEASE",
        "engine.options.quantize_lm_head",
        {"both": {"options": {"quantize_lm_head": True}, "release": "0.18.2"}},
        {"both": {"options": {"quantize_lm_head": True}, "release": "0.19.0"}},
        "TensorRT-LLM 0.18.2 has no quantize_lm_head yet; it came with 0.19.0.",
    ),
    (
        "RULE-OPTION-CHIP",
        "engine.options.low_latency_gemm_plugin",
        {"chip": "b200_sxm", **options(low_latency_gemm_plugin="fp8")},
        options(low_latency_gemm_plugin="fp8"),
        "low_latency_gemm_plugin is not implemented for sm_100, and b200_sxm is one.",
    ),
    (
        "RULE-OPTION-CHIP",
        "engine.options.gemm_swiglu_plugin",
        {"chip": "l40s", **options(gemm_swiglu_plugin="fp8")},
        options(gemm_swiglu_plugin="fp8"),
        "gemm_swiglu_plugin is not implemented for sm_89, and l40s is one.",
    ),
    (
        "RULE-OPTION-CONFLICT",
        "engine.options.opt_num_tokens",
        options(opt_num_tokens=16),
        options(opt_num_tokens=16, multiple_profiles=False),
        "multiple_profiles chooses the token counts it tunes for, so opt_num_tokens cannot be given; the builder stops on both.",
    ),
    (
        "RULE-OPTION-CONFLICT",
        "engine.options.user_buffer",
        options(user_buffer=True),
        {"chip_count": 2, "target": {"tensor_parallel": 2, "options": {"user_buffer": True, "reduce_fusion": True}}},
        "user_buffer needs reduce_fusion, which is not on.",
    ),
    (
        "RULE-OPTION-CONFLICT",
        "engine.options.reduce_fusion",
        options(reduce_fusion=True),
        {"chip_count": 2, "target": {"tensor_parallel": 2, "options": {"reduce_fusion": True}}},
        "reduce_fusion joins the sum over chips with what follows it; with target.tensor_parallel: 1 the builder resets it.",
    ),
    (
        "RULE-PADDING",
        "engine.options.remove_input_padding",
        options(remove_input_padding=False),
        options(remove_input_padding=True),
        "Triton batches requests in flight, which needs packed input: remove_input_padding cannot be off.",
    ),
    (
        "RULE-BEAM",
        "engine.options.max_beam_width",
        options(max_beam_width=4),
        alone(**options(max_beam_width=4)),
        "Draft tokens are verified for one beam only, and max_beam_width is 4: requests with both are rejected.",
    ),
    (
        "RULE-TOPOLOGY",
        "serve.topology",
        {"topology": "single"},
        alone(topology="single"),
        "Two engines are two Triton models, and one that asks them in turn: topology single has nobody who drafts.",
    ),
    (
        "RULE-NGRAM-LOGITS",
        "speculation.acceptance",
        {"method": "ngram", "draft": None, "acceptance": "logits"},
        {"method": "ngram", "draft": None},
        "Acceptance by logits compares the draft model's with the target's, and looked-up tokens have none.",
    ),
    (
        "RULE-GENERATION-LOGITS",
        "engine.options.gather_generation_logits",
        {"acceptance": "logits", **options(gather_generation_logits=False)},
        {"acceptance": "logits"},
        "Acceptance by logits needs gather_generation_logits on both builds; without it the pair hangs at its first request.",
    ),
    (
        "RULE-FAST-LOGITS",
        "engine.options.fast_logits",
        options(fast_logits=True),
        {"acceptance": "logits", **options(fast_logits=True)},
        "fast_logits hands the draft's logits to the target, and acceptance by tokens uses none.",
    ),
    (
        "RULE-ORCHESTRATOR",
        "target.tensor_parallel",
        {"chip_count": 8, "target": {"tensor_parallel": 8}},
        {},
        "Two models with 8 and 1 ranks: the server runs in orchestrator mode, 10 processes under MPI; there is no tensor parallelism "
        "without MPI.",
    ),
    (
        "RULE-DRAFT-BLACKWELL",
        "hardware.chip",
        {"chip": "b200_sxm"},
        alone(chip="b200_sxm"),
        "b200_sxm is sm_100, and upstream skips its draft-target tests of the engine flow from sm_100 on.",
    ),
    (
        "RULE-SEQ-LEN",
        "limits.max_sequence_tokens",
        {},
        alone(),
        "The builder adds the 5 draft tokens to max_seq_len by itself, so the target's engine will say 8197; limits.max_sequence_tokens "
        "stays prompt and answer together, 8192.",
    ),
]


def findings(**changes: Any) -> list[Any]:
    return [f for f in ENGINE.check_deployment(deployment(**changes)) if f.code != "LANE-PLAN-ONLY"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_rule_refuses_with_its_sentence_and_lets_pass(row: Row) -> None:
    code, field, refused, accepted, sentence = row
    found = [f for f in with_code(findings(**refused), code) if f.field == field]
    assert [f.message for f in found] == [sentence]
    assert [f for f in with_code(findings(**accepted), code) if f.field == field] == []


def test_a_sound_pair_is_only_told_what_the_builder_adds() -> None:
    assert [(f.code, f.severity) for f in findings()] == [("RULE-SEQ-LEN", "info")]


def test_an_int8_cache_alone_is_accepted() -> None:
    """What the refusal of FP8 on an A100 offers must itself be a sound plan."""
    plan = findings(chip="a100_sxm", **alone(target={"weights": "int8", "kv_cache": "int8"}, reuse=False))
    assert plan == []


@pytest.mark.parametrize("kv_cache", ["bf16", "auto"])
def test_a_16_bit_cache_on_an_a100_is_accepted(kv_cache: str) -> None:
    plan = findings(chip="a100_sxm", target={"weights": "none", "kv_cache": kv_cache}, draft={"weights": "none"})
    assert [f for f in plan if f.severity != "info"] == []


def test_auto_is_what_the_checkpoint_was_calibrated_for() -> None:
    stored = StoredFormat("modelopt", "W4A16_AWQ", "FP8", "good")
    found = with_code(findings(target={"weights": "int4_awq", "kv_cache": "auto"}, target_stored=stored), "RULE-KV-FP8-WEIGHTS")
    assert [f.field for f in found] == ["target.kv_cache"]


@pytest.mark.parametrize(
    ("chip", "fix"),
    [
        ("a100_sxm", "set target.kv_cache: bf16"),
        ("h200_sxm", "set target.weights to fp8, or target.kv_cache: bf16"),
        ("b200_sxm", "set target.weights to fp8 or nvfp4, or target.kv_cache: bf16"),
    ],
)
def test_the_way_out_runs_on_the_chip(chip: str, fix: str) -> None:
    found = findings(chip=chip, target={"weights": "none", "max_batched_tokens": 4096})
    assert [f.fix for f in found if f.code == "RULE-KV-FP8-WEIGHTS"] == [fix]
    assert not with_code(found, "RULE-CHUNKED"), "the chain is said once"


def test_without_drafts_another_way_out_is_offered() -> None:
    (found,) = with_code(findings(**alone(target={"kv_cache": "int8"})), "RULE-KV-INT8-REUSE")
    assert found.fix.endswith("or kv_cache.reuse: false")


WORDS: list[tuple[str, str, Mapping[str, Any], str]] = [
    (
        "RULE-KV-LANE",
        "target.kv_cache",
        {"kv_cache": "nvfp4"},
        "engine.kind tensorrt_llm has no nvfp4 KV cache: quantize.py of this lane offers INT8 and FP8 caches only; an NVFP4 cache exists "
        "in the PyTorch lane, on sm_100 and sm_103.",
    ),
    (
        "RULE-WEIGHTS-LANE",
        "target.weights",
        {"weights": "int2"},
        "engine.kind tensorrt_llm has no int2 weights: it has none, fp8, nvfp4, int8, int4, int4_awq or int8_sq.",
    ),
    (
        "RULE-OPTION",
        "engine.options.gemm_plugins",
        {"options": {"gemm_plugins": "auto"}},
        "engine.kind tensorrt_llm has no option gemm_plugins; did you mean gemm_plugin?",
    ),
    ("RULE-OPTION", "engine.options.zzz", {"options": {"zzz": 1}}, "engine.kind tensorrt_llm has no option zzz."),
    (
        "RULE-OPTION-ELSEWHERE",
        "engine.options.max_num_tokens",
        {"options": {"max_num_tokens": 1}},
        "max_num_tokens is no option: the pair file has limits.max_batched_tokens for it.",
    ),
    (
        "RULE-OPTION-NEVER",
        "engine.options.auto_parallel",
        {"options": {"auto_parallel": 8}},
        "The option auto_parallel cannot be used with a pair: the split of a checkpoint is fixed by tensor_parallel and pipeline_parallel.",
    ),
    (
        "RULE-OPTION-VALUE",
        "engine.options.gemm_plugin",
        {"options": {"gemm_plugin": "int8"}},
        "The option gemm_plugin takes auto | float16 | bfloat16 | fp8 | nvfp4 | disable, and 'int8' is none.",
    ),
]


@pytest.mark.parametrize(("code", "field", "changes", "sentence"), WORDS, ids=[row[1] for row in WORDS])
def test_words_that_the_lane_has_not(code: str, field: str, changes: Mapping[str, Any], sentence: str) -> None:
    assert [(f.code, f.field, f.message) for f in ENGINE.check(request("target", **changes))] == [(code, field, sentence)]


def test_known_words_pass() -> None:
    assert ENGINE.check(request("target", options={"gemm_plugin": "auto", "multiple_profiles": False})) == []


def engine(build: Changes, stored: Changes | None = None, version: str = "1.2.1") -> Changes:
    """A built engine in place of the target's checkpoint, as its reader describes it; `build` changes its build_config."""
    whole = {**WHOLE, **build}
    mode = whole["speculative_decoding_mode"]
    drafts = whole["max_draft_len"] if mode == "draft_tokens_external" else 0
    values = {
        "kind": "tensorrt_llm_engine",
        "weights": "FP8",
        "kv_cache": "FP8",
        "release": version,
        "details": {"speculative_decoding_mode": mode, "max_draft_tokens": str(drafts)},
        **(stored or {}),
    }
    record = {"version": version, "pretrained_config": {"architecture": "LlamaForCausalLM"}, "build_config": whole}
    return {"target_stored": StoredFormat(**values), "target_config": record}


WHOLE: Changes = {
    "max_batch_size": 16,
    "max_num_tokens": 8192,
    "max_seq_len": 8197,
    "max_draft_len": 5,
    "speculative_decoding_mode": "draft_tokens_external",
    "gather_generation_logits": True,
    "plugin_config": {"use_paged_context_fmha": True},
}
BUILT: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    (
        "RULE-ENGINE-RELEASE",
        "engine.release",
        {"build": {}, "version": "1.0.0"},
        {},
        "The target's engine was built with TensorRT-LLM 1.0.0, and the release is 1.2.1: an engine loads only in the "
        "release that built it.",
    ),
    (
        "RULE-ENGINE-CHIP",
        "hardware.chip",
        {"build": {}, "stored": {"details": {"sm": "89", "speculative_decoding_mode": "draft_tokens_external", "max_draft_tokens": "5"}}},
        {},
        "The target's engine was built for sm_89, and h200_sxm is sm_90.",
    ),
    (
        "RULE-ENGINE-DRAFTS",
        "speculation.max_draft_tokens",
        {"build": {"max_draft_len": 10}},
        {"max_draft_tokens": 12},
        "The plan asks for 12 draft tokens, and the target's engine takes 10: such a request is rejected.",
    ),
    (
        "RULE-ENGINE-DRAFTS",
        "speculation.max_draft_tokens",
        {"build": {"speculative_decoding_mode": "none", "max_draft_len": 10}},
        {},
        "The plan asks for 5 draft tokens, and the target's engine takes 0 (it was built without draft_tokens_external): such a request is "
        "rejected.",
    ),
    (
        "RULE-ENGINE-LIMITS",
        "limits.max_batch_size",
        {"build": {"max_batch_size": 8}},
        {},
        "The target's engine was built with max_batch_size 8, and the pair file asks for 16.",
    ),
    (
        "RULE-ENGINE-FMHA",
        "target.checkpoint",
        {"build": {"plugin_config": {"use_paged_context_fmha": False}}},
        {},
        "The target's engine has no paged context FMHA, and draft tokens cannot be without it.",
    ),
    (
        "RULE-ENGINE-LOGITS",
        "target.checkpoint",
        {"build": {"gather_generation_logits": False}},
        {"acceptance": "logits"},
        "Acceptance by logits needs generation logits, and the target's engine was built without them.",
    ),
]


@pytest.mark.parametrize("row", BUILT, ids=lambda row: row[0])
def test_an_engine_that_is_not_the_one_asked_for(row: tuple[str, str, Any, Any, str]) -> None:
    code, field, built, changes, sentence = row
    found = findings(**engine(**built), **changes)
    assert [(f.code, f.field, f.message) for f in found if f.code.startswith("RULE-ENGINE")] == [(code, field, sentence)]


def test_an_engine_as_asked_for() -> None:
    assert [f.code for f in findings(**engine({"max_draft_len": 10}), max_draft_tokens=10)] == ["RULE-SEQ-LEN"]


def test_ways_out_of_too_many_drafts() -> None:
    found = with_code(findings(**engine({"max_draft_len": 10}), max_draft_tokens=12), "RULE-ENGINE-DRAFTS")
    assert [f.fix for f in found] == [
        "set speculation.max_draft_tokens to 10 or less, or build the target again with --speculative_decoding_mode draft_tokens_external "
        "--max_draft_len 12",
    ]


def test_an_engine_without_the_mode_counts_as_zero_whatever_it_says() -> None:
    (found,) = with_code(findings(**engine({"speculative_decoding_mode": "none", "max_draft_len": 10})), "RULE-ENGINE-DRAFTS")
    assert (found.found, found.needed) == ("5", "<= 0")
    assert found.fix == (
        "set draft.method: none, or build the target again with --speculative_decoding_mode draft_tokens_external --max_draft_len 5"
    )


@pytest.mark.parametrize("plugins", [[], "x", None, 3, {"use_paged_context_fmha": "odd"}])
def test_odd_values_in_an_engines_record_are_no_crash(plugins: object) -> None:
    changes = engine({"plugin_config": plugins})
    assert "RULE-ENGINE-FMHA" not in {f.code for f in findings(**changes)}
    odd = {**changes["target_config"], "build_config": plugins}
    assert isinstance(findings(**{**changes, "target_config": odd}), list)


def test_what_is_stored_is_not_told_to_be_quantized_again() -> None:
    """Following a way out must not end in RULE-STORED-WEIGHTS or RULE-STORED-KV."""
    elsewhere = "point target.checkpoint at a checkpoint with FP8, W4A8_AWQ or NVFP4 weights"
    stored = {"": f"{elsewhere}, or set target.kv_cache: bf16", "FP8": elsewhere}
    for cache, fix in stored.items():
        facts = StoredFormat("huggingface", "FP8_BLOCK_SCALES", cache)
        assert [f.fix for f in with_code(findings(target_stored=facts), "RULE-KV-FP8-WEIGHTS")] == [fix]


def test_a_cache_that_a_checkpoint_was_made_for_is_left_only_by_another_checkpoint() -> None:
    int8 = StoredFormat("modelopt", "W8A8_SQ_PER_CHANNEL", "INT8", "good")
    (found,) = with_code(findings(target={"weights": "int8_sq", "kv_cache": "auto"}, target_stored=int8), "RULE-KV-INT8-REUSE")
    assert found.fix == "point target.checkpoint at a checkpoint that was not made for an INT8 KV cache"
    fp8 = StoredFormat("modelopt", "FP8", "FP8", "good")
    (found,) = with_code(findings(draft_stored=fp8), "RULE-DRAFT-KV")
    assert found.fix == ("point draft.checkpoint at a checkpoint that was not made for an FP8 KV cache, or compare both in the gates")


def test_options_are_judged_once_and_not_once_a_role() -> None:
    made = [request(role, options={"no_such": True}) for role in ("target", "draft")]
    assert [f.code for one in made for f in ENGINE.check(one)] == ["RULE-OPTION"]


@pytest.mark.parametrize(
    ("built", "asked", "field", "sentence"),
    [
        (
            6143,
            6144,
            "limits.max_input_tokens",
            "The target's engine was built with max_input_len 6143, and prompts have up to 6144 tokens: longer ones are rejected.",
        ),
        (
            8190,
            6144,
            "limits.max_sequence_tokens",
            "The target's engine was built with max_input_len 8190, and each draft round sends the grown sequence as a prompt, up to 8191 "
            "tokens: longer ones are rejected.",
        ),
    ],
)
def test_an_engine_takes_the_longest_prompt(built: int, asked: int, field: str, sentence: str) -> None:
    (found,) = with_code(findings(**engine({"max_input_len": built}), max_prompt_tokens=asked), "RULE-ENGINE-LIMITS")
    assert (found.field, found.message) == (field, sentence)
    most = built + (field == "limits.max_sequence_tokens")
    assert found.fix == f"set {field} to {most} or less, or build the engine again with --max_input_len 8191"
    assert not with_code(findings(**engine({"max_input_len": 8191}), max_prompt_tokens=asked), "RULE-ENGINE-LIMITS")


def test_without_drafts_only_users_prompts_count() -> None:
    changes = {**engine({"max_input_len": 6144}), **alone(max_prompt_tokens=6144)}
    assert not with_code(findings(**changes), "RULE-ENGINE-LIMITS")
