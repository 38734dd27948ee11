"""Each common rule: one pair that it refuses with its full sentence, and one that it lets pass. Tried on the engine lane."""

from pathlib import Path

import pytest

from builder.api import StoredFormat
from plugins.nvidia.memory import engine_memory
from plugins.nvidia.rules import Case, check_common, find_lane
from tests.unit.plugins.nvidia.pairs import LLAMA_70B, Changes, alone, deployment, with_code

LANE = "tensorrt_llm"
MODELOPT_FP8 = StoredFormat("modelopt", weights="FP8", kv_cache="FP8", kv_scales="good")
QWEN3 = {"architectures": ["Qwen3ForCausalLM"]}
FP8_KV = {"kv_cache": "fp8"}
Row = tuple[str, str, Changes, Changes, str]

# code, field, refused, accepted, sentence
ROWS: list[Row] = [
    (
        "RULE-RELEASE-UNKNOWN",
        "engine.release",
        {"target": {"release": "1.2.3"}},
        {},
        "No TensorRT-LLM release 1.2.3 is in the capability data; the nearest name is 1.2.1.",
    ),
    (
        "RULE-RELEASE-UNKNOWN",
        "engine.release",
        {"target": {"release": "latest"}},
        {},
        "No TensorRT-LLM release latest is in the capability data; the nearest name is 1.2.1.",
    ),
    (
        "RULE-RELEASE-RANGE",
        "engine.release",
        {"target": {"release": "1.3.0"}},
        {},
        "TensorRT-LLM 1.3.0 lies outside 0.18.2 to 1.2.x, the releases of engine.kind tensorrt_llm (TensorRT engines): upstream removed "
        "the engine flow in July 2026, and releases before 0.18.2 were not read.",
    ),
    (
        "RULE-RELEASE-DEFAULT",
        "engine.release",
        {"target": {"release": None}},
        {},
        "No release is named; the plan takes 1.2.1, and another one can refuse what this one allows.",
    ),
    (
        "RULE-RELEASE-CANDIDATE",
        "engine.release",
        {"target": {"release": "1.2.0rc8"}},
        {},
        "1.2.0rc8 is a release candidate; a crash of speculative decoding in one was never mended in place.",
    ),
    (
        "RULE-NO-IMAGE",
        "engine.release",
        {"target": {"release": "1.2.0"}},
        {},
        "No Triton image is known to carry TensorRT-LLM 1.2.0, and an engine loads only in the release that built it; the nearest is 1.2.1 "
        "in nvcr.io/nvidia/tritonserver:26.04-trtllm-python-py3.",
    ),
    (
        "RULE-ARCHITECTURE",
        "target.checkpoint",
        {"target_config": QWEN3, "target": {"release": "0.21.0"}},
        {"target_config": QWEN3},
        "Qwen3ForCausalLM can be converted from TensorRT-LLM 1.0.0 on, and the release is 0.21.0.",
    ),
    (
        "RULE-ARCHITECTURE",
        "target.checkpoint",
        {"target_config": {"architectures": ["GptOssForCausalLM"]}},
        {},
        "No release from 0.18.2 to 1.2.x of the engine lane is known to convert GptOssForCausalLM.",
    ),
    (
        "RULE-CHIP-GPU",
        "hardware.chip",
        {"chip": "cpu"},
        {},
        "TensorRT-LLM runs on NVIDIA GPUs, and cpu is none.",
    ),
    (
        "RULE-CHIP-RELEASE",
        "hardware.chip",
        {"chip": "b300_sxm", "target": {"release": "1.0.0"}},
        {"chip": "b300_sxm", "target": {"release": "1.1.0"}},
        "b300_sxm is sm_103, which TensorRT-LLM supports from 1.1.0 on; the release is 1.0.0.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {"chip": "a100_sxm", "draft": {"weights": "none"}},
        {"chip": "l4"},
        "FP8 weights need sm_89 (Ada) or newer, and a100_sxm is sm_80.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {"target": {"weights": "nvfp4"}},
        {"chip": "rtx_5090", "target": {"weights": "nvfp4"}},
        "NVFP4 weights need sm_100 (Blackwell) or newer, and h200_sxm is sm_90.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {"chip": "b200_sxm", "target": {"weights": "int8_sq"}},
        {"target": {"weights": "int8_sq"}},
        "W8A8_SQ_PER_CHANNEL weights cannot run on b200_sxm, which is sm_100: the builder has no SmoothQuant kernels for sm_100 to sm_119.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {"chip": "gb300", "target": {"weights": "int4"}},
        {"chip": "rtx_pro_6000_server", "target": {"weights": "int4"}},
        "W4A16 weights cannot run on gb300, which is sm_103: the builder has no INT4 kernels for sm_100 to sm_119.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {"chip": "b200_sxm", "target": {"options": {"fp8_rowwise": True}}},
        {"target": {"options": {"fp8_rowwise": True}}},
        "FP8_PER_CHANNEL_PER_TOKEN weights cannot run on b200_sxm, which is sm_100: the builder has no kernels with per-channel and "
        "per-token scales for sm_100 to sm_119.",
    ),
    (
        "RULE-WEIGHTS-CHIP",
        "target.weights",
        {
            "chip": "a100_sxm",
            "target": {"weights": "int4_awq"},
            "draft": None,
            "target_stored": StoredFormat("modelopt", weights="W4A8_AWQ"),
        },
        {"chip": "l40s", "target": {"weights": "int4_awq"}, "target_stored": StoredFormat("modelopt", weights="W4A8_AWQ")},
        "W4A8_AWQ weights need sm_89 (Ada) or newer, and a100_sxm is sm_80.",
    ),
    (
        "RULE-KV-CHIP",
        "target.kv_cache",
        {"chip": "b200_sxm", "target": {"kv_cache": "int8"}},
        {"target": {"kv_cache": "int8"}},
        "An INT8 KV cache cannot be on b200_sxm, which is sm_100: the builder has no INT8 kernels for sm_100 to sm_119.",
    ),
    (
        "RULE-DENIED",
        "target.kv_cache",
        {"chip": "rtx_5090", "target": {"release": "0.19.0"}},
        {"chip": "rtx_5090", "target": {"release": "0.20.0"}},
        "TensorRT-LLM 0.19.0 on rtx_5090: FP8 attention is refused on sm_120 before release 0.20.0 (NVIDIA/TensorRT-LLM issue 2855).",
    ),
    (
        "RULE-KNOWN-ISSUE",
        "target.kv_cache",
        {"chip": "l40s", "target": {"release": "0.21.0"}},
        {"chip": "l40s", "target": {"release": "1.0.0"}},
        "TensorRT-LLM 0.21.0 on l40s: on Ada, FP8 attention was reported as refused; a fallback for its kernels came with 1.0 "
        "(NVIDIA/TensorRT-LLM issue 1864, pull request 5779).",
    ),
    (
        "RULE-KNOWN-ISSUE",
        "hardware.count",
        {"chip": "rtx_pro_6000_server", "chip_count": 2, "target": {"tensor_parallel": 2}},
        {"chip": "rtx_pro_6000_server"},
        "TensorRT-LLM 1.2.1 on rtx_pro_6000_server: several RTX Pro 6000 or RTX 50 cards together are a known issue upstream "
        "(TensorRT-LLM release notes 0.20.0, known issues).",
    ),
    (
        "RULE-KNOWN-ISSUE",
        "kv_cache.host_offload_bytes",
        {"host_offload_bytes": 1 << 30},
        {},
        "TensorRT-LLM 1.2.1 on h200_sxm: with blocks offloaded to the host, answers with other requests' tokens were reported, also after "
        "a first fix (NVIDIA/TensorRT-LLM issue 8813).",
    ),
    (
        "RULE-STORED-KIND",
        "draft.checkpoint",
        {"draft_stored": StoredFormat("gguf")},
        {"draft_stored": MODELOPT_FP8},
        "The draft's checkpoint is of kind gguf, and engine.kind tensorrt_llm reads huggingface, modelopt, tensorrt_llm or "
        "tensorrt_llm_engine.",
    ),
    (
        "RULE-STORED-WEIGHTS",
        "target.weights",
        {"target": {"weights": "none"}, "target_stored": MODELOPT_FP8},
        {"target_stored": MODELOPT_FP8},
        "The target's checkpoint (modelopt) already holds FP8 weights; none weights cannot be made of it.",
    ),
    (
        "RULE-STORED-WEIGHTS",
        "target.weights",
        {"target_stored": StoredFormat("tensorrt_llm", kv_cache="FP8")},
        {"target_stored": StoredFormat("tensorrt_llm", weights="FP8", kv_cache="FP8")},
        "The target's checkpoint (tensorrt_llm) already holds unquantized weights; fp8 weights cannot be made of it.",
    ),
    (
        "RULE-STORED-WEIGHTS",
        "target.weights",
        {"target_stored": StoredFormat("modelopt", weights="MXFP4")},
        {"target_stored": StoredFormat("modelopt", weights="FP8_PER_CHANNEL_PER_TOKEN")},
        "The target's checkpoint (modelopt) holds MXFP4 weights, which engine.kind tensorrt_llm does not take.",
    ),
    (
        "RULE-STORED-KV",
        "target.kv_cache",
        {"target": {"kv_cache": "bf16"}, "target_stored": MODELOPT_FP8},
        {"target": {"kv_cache": "auto"}, "target_stored": MODELOPT_FP8},
        "The target's checkpoint was made for an FP8 KV cache, and bf16 is asked for; the loader refuses that.",
    ),
    (
        "RULE-STORED-KV",
        "target.kv_cache",
        {"target_stored": StoredFormat("tensorrt_llm", weights="FP8")},
        {"target_stored": StoredFormat("modelopt", weights="FP8")},
        "The target's checkpoint was made for an unquantized KV cache, and fp8 is asked for; the loader refuses that.",
    ),
    (
        "RULE-STORED-SPLIT",
        "target.tensor_parallel",
        {"chip_count": 4, "target": {"tensor_parallel": 4}, "target_stored": StoredFormat("tensorrt_llm", "FP8", "FP8", tensor_parallel=2)},
        {"chip_count": 2, "target": {"tensor_parallel": 2}, "target_stored": StoredFormat("tensorrt_llm", "FP8", "FP8", tensor_parallel=2)},
        "The target's checkpoint was converted for tensor_parallel 2 x pipeline_parallel 1, and the pair file says 4 x 1: the checkpoint's "
        "split counts, not a flag of the build.",
    ),
    (
        "RULE-KV-SCALES",
        "target.kv_cache",
        alone(target={"weights": "int8", "kv_cache": "int8"}, target_stored=StoredFormat("modelopt", "W8A16")),
        alone(target={"weights": "int8", "kv_cache": "int8"}, target_stored=StoredFormat("modelopt", "W8A16", "INT8", "good")),
        "The target's checkpoint was quantized without its cache, so there are no KV scales: an INT8 cache without calibrated scales "
        "answers nonsense.",
    ),
    (
        "RULE-KV-SCALES",
        "target.kv_cache",
        {"target_stored": StoredFormat("modelopt", "FP8")},
        {"target_stored": MODELOPT_FP8},
        "The target's checkpoint was quantized without its cache, so there are no KV scales: the runtime takes 1.0 for an FP8 cache, and "
        "small keys and values lose accuracy.",
    ),
    (
        "RULE-WORLD-SIZE",
        "target.tensor_parallel",
        {"chip_count": 2, "target": {"tensor_parallel": 2, "pipeline_parallel": 2}},
        {"chip_count": 4, "target": {"tensor_parallel": 2, "pipeline_parallel": 2}},
        "The target's tensor_parallel 2 x pipeline_parallel 2 takes 4 chips, and hardware.count is 2.",
    ),
    (
        "RULE-CHIPS-IDLE",
        "hardware.count",
        {"chip_count": 2},
        {"chip_count": 2, "target": {"tensor_parallel": 2}},
        "2 chips are planned, and target and draft share 1: the rest is idle.",
    ),
    (
        "RULE-TP-HEADS",
        "target.tensor_parallel",
        {"chip_count": 8, "target": {"tensor_parallel": 8}, "target_shape": {"heads": 28, "kv_heads": 4}},
        {"chip_count": 4, "target": {"tensor_parallel": 4}, "target_shape": {"heads": 28, "kv_heads": 4}},
        "28 attention heads with 4 of keys and values cannot be split over 8 chips; 1, 2, 4 or 28 work.",
    ),
    (
        "RULE-TP-HEADS",
        "target.tensor_parallel",
        {"chip_count": 3, "target": {"tensor_parallel": 3}, "target_shape": {"heads": 12, "kv_heads": 2}},
        {"chip_count": 4, "target": {"tensor_parallel": 4}, "target_shape": {"heads": 12, "kv_heads": 2}},
        "12 attention heads with 2 of keys and values cannot be split over 3 chips; 1, 2, 4, 6 or 12 work.",
    ),
    (
        "RULE-KV-COPIED",
        "target.tensor_parallel",
        {"chip_count": 8, "target": {"tensor_parallel": 8}, "target_shape": {"kv_heads": 4}},
        {"chip_count": 8, "target": {"tensor_parallel": 8}},
        "Over 8 chips each of the 4 heads of keys and values is kept 2 times: a chip's cache is not smaller than over 4.",
    ),
    (
        "RULE-VOCAB-PADDED",
        "target.tensor_parallel",
        {"chip_count": 8, "target": {"tensor_parallel": 8}, "target_shape": {"vocab_size": 32002}, "draft_shape": {"vocab_size": 32002}},
        {"chip_count": 2, "target": {"tensor_parallel": 2}, "target_shape": {"vocab_size": 32002}, "draft_shape": {"vocab_size": 32002}},
        "32002 rows of the output layer over 8 chips are padded to 32008; the padding is never answered.",
    ),
    (
        "RULE-LOGITS-WIDTH",
        "draft.tensor_parallel",
        {
            "acceptance": "logits",
            "chip_count": 8,
            "target": {"tensor_parallel": 8},
            "target_shape": {"vocab_size": 32002},
            "draft_shape": {"vocab_size": 32002},
        },
        {"acceptance": "logits", "chip_count": 8, "target": {"tensor_parallel": 8}},
        "Acceptance by logits compares rows of 32008 (target, tensor_parallel 8) and 32002 (draft, tensor_parallel 1) numbers: the split "
        "pads them differently.",
    ),
    (
        "RULE-PP-LAYERS",
        "target.pipeline_parallel",
        {"target": {"pipeline_parallel": 4}, "target_shape": {"layers": 3}},
        {"target": {"pipeline_parallel": 4}},
        "3 layers cannot fill 4 pipeline stages.",
    ),
    (
        "RULE-PP-UNEVEN",
        "target.pipeline_parallel",
        {"target": {"pipeline_parallel": 4}, "target_shape": {"layers": 126}},
        {"target": {"pipeline_parallel": 2}, "target_shape": {"layers": 126}},
        "126 layers over 4 pipeline stages are uneven: the stage of 32 layers decides memory and time of all.",
    ),
    (
        "RULE-PP-DRAFTS",
        "target.pipeline_parallel",
        {"target": {"pipeline_parallel": 2}},
        alone(target={"pipeline_parallel": 2}),
        "Upstream documents draft tokens with tensor parallelism only; each draft round would wait for every pipeline stage.",
    ),
    (
        "RULE-DRAFT-TP",
        "draft.tensor_parallel",
        {"chip_count": 4, "target": {"tensor_parallel": 4}, "draft": {"tensor_parallel": 4}},
        {"chip_count": 4, "target": {"tensor_parallel": 4}},
        "A draft over 4 chips waits for them at every layer of every draft token; users found no gain that way.",
    ),
    (
        "RULE-BLOCK-SIZE",
        "kv_cache.tokens_per_block",
        {"both": {"tokens_per_block": 48}},
        {"both": {"tokens_per_block": 64}},
        "The paged cache has blocks of a power of two, and 48 is none.",
    ),
    (
        "RULE-BLOCK-LARGE",
        "kv_cache.tokens_per_block",
        {"both": {"tokens_per_block": 1024}},
        {"both": {"tokens_per_block": 128}},
        "Only whole blocks are shared, so prompts with less than 1024 tokens in common share nothing.",
    ),
    (
        "RULE-BATCH-DRAFTS",
        "limits.max_batch_size",
        {"both": {"max_batch_size": 128}},
        alone(both={"max_batch_size": 128}),
        "A batch of 128 keeps the GPU busy by itself; above 64, draft tokens seldom pay.",
    ),
    (
        "RULE-BATCHED-TOKENS",
        "limits.max_batched_tokens",
        {"both": {"max_batched_tokens": 95}},
        {"both": {"max_batched_tokens": 96}},
        "Verifying 5 draft tokens and one more for 16 sequences is a pass of 96 tokens, and the limit is 95; the builder would raise it "
        "without asking.",
    ),
    (
        "RULE-BATCHED-CLIPPED",
        "limits.max_batched_tokens",
        {"both": {"max_batch_size": 1, "max_batched_tokens": 16000}},
        {"both": {"max_batch_size": 1, "max_batched_tokens": 8192}},
        "limits.max_batch_size 1 x limits.max_sequence_tokens 8192 is 8192 tokens, and a pass cannot have more; the builder "
        "lowers the limit of 16000 to that.",
    ),
    (
        "RULE-BATCHED-LARGE",
        "limits.max_batched_tokens",
        {"both": {"max_batched_tokens": 20000}},
        {"both": {"max_batched_tokens": 16384}},
        "A pass of 20000 tokens is not faster than one of 16384 and takes memory from the cache.",
    ),
    (
        "RULE-BATCHED-BLOCK",
        "limits.max_batched_tokens",
        {"both": {"max_batched_tokens": 100, "tokens_per_block": 128}},
        {"both": {"max_batched_tokens": 128, "tokens_per_block": 128}},
        "A prompt is read in chunks of whole blocks, and a block of 128 tokens is more than a pass of 100.",
    ),
    (
        "RULE-HEAD-SIZE",
        "target.checkpoint",
        {"target_shape": {"head_dim": 100}},
        {"target_shape": {"head_dim": 96}},
        "Heads of 100 numbers: the attention kernels take multiples of 8.",
    ),
    (
        "RULE-METHOD",
        "draft.method",
        {"method": "eagle"},
        {"method": "ngram", "draft": None},
        "engine.kind tensorrt_llm has no way to draft that is called eagle.",
    ),
    (
        "RULE-DRAFTS-REUSE",
        "kv_cache.reuse",
        {"reuse": False},
        alone(reuse=False),
        "Draft tokens need block reuse: every round is a new request with the whole sequence, which would be computed again.",
    ),
    (
        "RULE-DRAFT-KV",
        "draft.kv_cache",
        {"draft": FP8_KV},
        {"draft": {"kv_cache": "bf16"}},
        "A draft with an FP8 cache proposes worse: 2.7 accepted tokens became 1.8 in one report. Its cache is the small part of "
        "the memory.",
    ),
    (
        "RULE-OFFLOAD-REUSE",
        "kv_cache.host_offload_bytes",
        alone(host_offload_bytes=1 << 30, reuse=False),
        alone(host_offload_bytes=1 << 30),
        "Blocks are kept in host memory to be reused, and kv_cache.reuse is false: they would never be read.",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1]}")
def test_a_rule_refuses_with_its_sentence_and_lets_pass(row: Row) -> None:
    code, field, refused, accepted, sentence = row
    found = with_code(check_common(deployment(**refused), LANE), code)
    assert [(f.field, f.message) for f in found] == [(field, sentence)]
    assert with_code(check_common(deployment(**accepted), LANE), code) == []


def test_a_sound_pair_has_nothing_to_say() -> None:
    assert check_common(deployment(), LANE) == []


def test_fp8_on_the_wrong_card() -> None:
    """The report of an A100: both compute capabilities are named, and what would work there."""
    weights = {"weights": "none"}
    (found,) = with_code(check_common(deployment("a100_sxm", both=weights), LANE), "RULE-KV-CHIP")
    assert found.message == "An FP8 KV cache needs sm_89 (Ada) or newer, and a100_sxm is sm_80."
    assert (found.found, found.needed) == ("sm_80", "sm_89 or newer")
    assert found.fix == (
        "set target.kv_cache to bf16 (16-bit) or int8 (only with kv_cache.reuse: false and draft.method: none); "
        "or choose a chip with sm_89 or newer"
    )
    assert with_code(check_common(deployment("h100_sxm", both=weights), LANE), "RULE-KV-CHIP") == []


def test_everything_is_said_at_once() -> None:
    changes = {"both": {"release": "1.9.9", "tokens_per_block": 48}, "reuse": False}
    codes = {f.code for f in check_common(deployment("a100_sxm", **changes), LANE)}
    assert codes == {"RULE-RELEASE-RANGE", "RULE-WEIGHTS-CHIP", "RULE-KV-CHIP", "RULE-BLOCK-SIZE", "RULE-DRAFTS-REUSE"}


def test_the_pytorch_lane_has_its_own_data() -> None:
    """NVFP4 caches on sm_100 and sm_103 alone, from a release on."""
    nvfp4 = {"target": {"weights": "nvfp4", "kv_cache": "nvfp4"}}
    kind = "tensorrt_llm_pytorch"
    assert not with_code(check_common(deployment("b200_sxm", **nvfp4), kind), "RULE-KV-CHIP")
    (chip,) = with_code(check_common(deployment("rtx_5090", **nvfp4), kind), "RULE-KV-CHIP")
    assert chip.message == (
        "An NVFP4 KV cache cannot be on rtx_5090, which is sm_120: upstream has NVFP4 cache kernels for sm_100 and sm_103 only "
        "(issues 7988, 10241)."
    )
    assert chip.needed == "sm_100 to sm_103"
    (old,) = with_code(check_common(deployment("b200_sxm", both={"release": "1.0.0"}, **nvfp4), kind), "RULE-KV-RELEASE")
    assert old.message == "An NVFP4 KV cache exists from TensorRT-LLM 1.2.0rc2 on; the release is 1.0.0."
    (stored,) = with_code(check_common(deployment(target_stored=StoredFormat("gguf")), kind), "RULE-STORED-KIND")
    assert stored.needed == "huggingface | modelopt"


def test_a_known_issue_of_one_model_family() -> None:
    split = {"both": {"release": "1.0.0"}, "target": {"pipeline_parallel": 2}, "chip_count": 2}
    kind = "tensorrt_llm_pytorch"
    found = with_code(check_common(deployment(**split), kind), "RULE-KNOWN-ISSUE")
    assert [f.field for f in found] == ["engine.release", "target.pipeline_parallel"]
    other = deployment(**split, target_config={"architectures": ["Qwen2ForCausalLM"]})
    assert [f.field for f in with_code(check_common(other, kind), "RULE-KNOWN-ISSUE")] == ["engine.release"]


def test_path_is_free() -> None:
    """Common rules read no files."""
    assert check_common(deployment(path=Path("/nowhere")), LANE) == []


@pytest.mark.parametrize(
    ("changes", "code", "fix"),
    [
        ({"chip_count": 1, "target": {"pipeline_parallel": 2}}, "RULE-WORLD-SIZE", "or a smaller target.pipeline_parallel"),
        ({"chip_count": 1, "target": {"tensor_parallel": 2}}, "RULE-WORLD-SIZE", "or a smaller target.tensor_parallel"),
        (
            {"chip_count": 2, "target": {"tensor_parallel": 2, "pipeline_parallel": 2}},
            "RULE-WORLD-SIZE",
            "or a smaller target.tensor_parallel or target.pipeline_parallel",
        ),
        (
            {"chip_count": 2, "target": {"pipeline_parallel": 2}},
            "RULE-PP-DRAFTS",
            "set target.pipeline_parallel: 1 and target.tensor_parallel: 2",
        ),
        (
            {"chip_count": 3, "target": {"pipeline_parallel": 3}},
            "RULE-PP-DRAFTS",
            "set target.pipeline_parallel: 1 and target.tensor_parallel: 2 with hardware.count: 2 or target.tensor_parallel: 4 "
            "with hardware.count: 4",
        ),
        (
            {"chip_count": 200, "target": {"pipeline_parallel": 200}},
            "RULE-PP-DRAFTS",
            "set target.pipeline_parallel: 1 and target.tensor_parallel: 64 with hardware.count: 64",
        ),
        ({"target": {"release": "0.17.0"}}, "RULE-RELEASE-RANGE", 'set engine.release: "1.2.1"'),
        ({"target": {"release": "1.3.0rc20"}}, "RULE-RELEASE-RANGE", 'set engine.release: "1.2.1", or engine.kind: tensorrt_llm_pytorch'),
        (
            {"target": {"release": "1.3.0"}},
            "RULE-RELEASE-RANGE",
            'set engine.release: "1.2.1", or engine.kind: tensorrt_llm_pytorch with engine.release: "1.3.0rc27"',
        ),
        (
            {"chip": "a100_sxm", "draft": {"weights": "int8"}},
            "RULE-WEIGHTS-CHIP",
            "set target.weights to int8, int4, int4_awq or int8_sq, or choose a chip with sm_89 or newer",
        ),
        (
            {"chip": "a100_sxm", "target": {"weights": "int4"}},
            "RULE-WEIGHTS-CHIP",
            "set draft.weights to none, int8, int4, int4_awq or int8_sq, or choose a chip with sm_89 or newer",
        ),
        (
            {"chip": "a100_sxm", "draft": {"weights": "int8"}, "target_stored": StoredFormat("modelopt", "FP8")},
            "RULE-WEIGHTS-CHIP",
            "point target.checkpoint at the unquantized model, or choose a chip with sm_89 or newer",
        ),
        (
            {"target": {"weights": "int8"}, "target_stored": StoredFormat("modelopt", "FP8")},
            "RULE-STORED-WEIGHTS",
            "set target.weights: fp8",
        ),
        (
            {"chip": "a100_sxm", "target": {"weights": "int8"}, "target_stored": StoredFormat("modelopt", "FP8")},
            "RULE-STORED-WEIGHTS",
            "point target.checkpoint at the unquantized model",
        ),
        (
            {"chip": "a100_sxm", "target_stored": StoredFormat("modelopt", "W8A8_SQ_PER_CHANNEL", "FP8"), "draft": {"weights": "int8"}},
            "RULE-KV-CHIP",
            "point target.checkpoint at a checkpoint that was not made for an FP8 KV cache; or choose a chip with sm_89 or newer",
        ),
    ],
)
def test_ways_out_are_not_refused_when_they_are_followed(changes: Changes, code: str, fix: str) -> None:
    changes = dict(changes)
    (found,) = with_code(check_common(deployment(changes.pop("chip", "h200_sxm"), **changes), LANE), code)
    assert found.fix.endswith(fix)


@pytest.mark.parametrize(("asked", "stored"), [("auto", "FP8"), ("auto", ""), ("fp8", ""), ("auto", "INT8")])
def test_memory_and_rules_see_the_same_cache(asked: str, stored: str) -> None:
    facts = StoredFormat("huggingface", "FP8", stored)
    made = deployment(target={"kv_cache": asked}, target_stored=facts)
    side = Case(made, find_lane(LANE), find_lane(LANE).default_release).target
    assert side.kv_cache == engine_memory(made.target, LLAMA_70B, LANE, facts).kv_cache
