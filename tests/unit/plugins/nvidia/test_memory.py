"""Memory of TensorRT-LLM engines by formula, against published sizes of public models."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builder.api import BuildNeeds, EngineRequest, ModelShape, StoredFormat
from plugins.nvidia.memory import (
    activation_bytes,
    build_needs,
    engine_memory,
    kv_bytes_per_token,
    largest_stage,
    lookup_bytes,
    weights_bytes,
)

KIB, GIB = 2**10, 2**30
DATA = Path(__file__).parents[3] / "data" / "kv_bytes.yaml"
KV_ROWS: dict[str, dict[str, Any]] = yaml.safe_load(DATA.read_text())["models"]

LLAMA_8B = ModelShape(8_030_261_248, 32, 8, 128, 32, 4096, 14336, 128256, 131072, 128256 * 4096)
LLAMA_70B = ModelShape(70_553_706_496, 80, 8, 128, 64, 8192, 28672, 128256, 131072, 128256 * 8192)
LLAMA_405B = ModelShape(405_853_388_800, 126, 8, 128, 128, 16384, 53248, 128256, 131072, 128256 * 16384)
LLAMA_1B = ModelShape(1_235_814_400, 16, 8, 64, 32, 2048, 8192, 128256, 131072, 128256 * 2048, tied_head=True)


def request(**changes: Any) -> EngineRequest:
    values: dict[str, Any] = {
        "role": "target",
        "checkpoint": Path("nowhere"),
        "weights": "fp8",
        "kv_cache": "fp8",
        "tokens_per_block": 32,
        "max_batch_size": 16,
        "max_input_tokens": 4095,
        "max_sequence_tokens": 4096,
        "max_batched_tokens": 8192,
        "max_draft_tokens": 5,
    }
    return EngineRequest(**values | changes)


def shape_of(row: dict[str, Any]) -> ModelShape:
    rank, rope = row.get("mla", (0, 0))
    return ModelShape(1, row["layers"], row.get("kv_heads", 1), row.get("head_dim", 0), kv_lora_rank=rank, rope_head_dim=rope)


@pytest.mark.parametrize("kv_cache", ["bf16", "fp8", "int8", "nvfp4"])
@pytest.mark.parametrize("model", KV_ROWS)
def test_bytes_per_token_of_public_models_are_exact(model: str, kv_cache: str) -> None:
    row = KV_ROWS[model]
    assert kv_bytes_per_token(shape_of(row), kv_cache) == row["fp8" if kv_cache == "int8" else kv_cache] * KIB


@pytest.mark.parametrize(("tensor_parallel", "share"), [(1, 1), (2, 2), (4, 4), (8, 8), (16, 8)])
def test_tensor_parallel_divides_up_to_the_kv_heads_then_heads_are_replicated(tensor_parallel: int, share: int) -> None:
    assert kv_bytes_per_token(LLAMA_70B, "fp8", tensor_parallel) == 160 * KIB // share


@pytest.mark.parametrize(("kv_heads", "tensor_parallel", "heads_a_rank"), [(3, 2, 2), (25, 4, 7), (1, 8, 1)])
def test_heads_that_do_not_divide_count_on_the_fullest_rank(kv_heads: int, tensor_parallel: int, heads_a_rank: int) -> None:
    assert kv_bytes_per_token(ModelShape(1, 1, kv_heads, 64), "fp8", tensor_parallel) == 2 * heads_a_rank * 64


def test_a_latent_row_lies_on_every_rank() -> None:
    latent = shape_of(KV_ROWS["DeepSeek-V3"])
    assert kv_bytes_per_token(latent, "bf16", 8) == kv_bytes_per_token(latent, "bf16", 1) == 61 * 576 * 2


@pytest.mark.parametrize(("layers", "stages", "largest"), [(80, 2, 40), (126, 4, 32), (61, 8, 8), (30, 1, 30)])
def test_pipeline_parallel_counts_the_largest_stage(layers: int, stages: int, largest: int) -> None:
    assert largest_stage(layers, stages) == largest
    assert kv_bytes_per_token(ModelShape(1, layers, 8, 128), "fp8", 1, stages) == 2 * largest * 8 * 128


def test_a_row_that_scales_do_not_divide_is_rounded_up() -> None:
    assert kv_bytes_per_token(ModelShape(1, 1, 1, 100), "nvfp4") == 2 * (50 + 7)


# Sizes of public checkpoints in these formats, in GB: of the model cards, or the sum of their files.
@pytest.mark.parametrize(
    ("shape", "weights", "least", "most"),
    [
        (LLAMA_8B, "none", 16.0, 16.1),
        (LLAMA_8B, "fp8", 9.0, 9.2),
        (LLAMA_70B, "none", 141.0, 141.2),
        (LLAMA_70B, "fp8", 66.0 * 1.0737, 70.0 * 1.0737),
        (LLAMA_70B, "nvfp4", 40.0, 43.0),
        (LLAMA_405B, "none", 811.0, 812.0),
        (LLAMA_405B, "fp8", 405.0, 411.0),
        (LLAMA_405B, "nvfp4", 811 / 3.5 - 3, 811 / 3.5 + 3),
    ],
)
def test_weights_agree_with_public_sizes(shape: ModelShape, weights: str, least: float, most: float) -> None:
    assert least <= weights_bytes(request(weights=weights), shape, "tensorrt_llm") / 1e9 <= most


def test_embedding_and_output_layer_stay_in_16_bits() -> None:
    both = 2 * 128256 * 8192
    assert weights_bytes(request(), LLAMA_70B, "tensorrt_llm") == LLAMA_70B.parameters - both + 2 * both


def test_a_tied_output_layer_is_a_copy_in_engines_and_none_in_torch() -> None:
    table = 2 * 128256 * 2048
    engine, torch = (weights_bytes(request(weights="none"), LLAMA_1B, lane) for lane in ("tensorrt_llm", "tensorrt_llm_pytorch"))
    assert torch == 2 * LLAMA_1B.parameters
    assert engine - torch == table


def test_embedding_is_looked_up_where_the_output_layer_is_another_tensor() -> None:
    table = 2 * 128256 * 2048
    assert lookup_bytes(request(), LLAMA_1B, "tensorrt_llm") == table
    assert lookup_bytes(request(tensor_parallel=2), LLAMA_1B, "tensorrt_llm") == table
    assert lookup_bytes(request(), LLAMA_1B, "tensorrt_llm_pytorch") == 0
    assert lookup_bytes(request(tensor_parallel=2), LLAMA_70B, "tensorrt_llm_pytorch") == 128256 * 8192
    memory = engine_memory(request(), LLAMA_1B, "tensorrt_llm")
    assert memory.weights_bytes - (memory.lookup_bytes or 0) == pytest.approx(1.50e9, rel=0.01)


def test_tensor_parallel_keeps_the_embedding_whole_on_every_rank_of_an_engine() -> None:
    whole, half = (weights_bytes(request(weights="none", tensor_parallel=tp), LLAMA_70B, "tensorrt_llm") for tp in (1, 2))
    assert 2 * half - whole == 2 * LLAMA_70B.embedding_parameters
    assert weights_bytes(request(weights="none", tensor_parallel=2), LLAMA_70B, "tensorrt_llm_pytorch") == LLAMA_70B.parameters


def test_pipeline_stages_share_layers_and_carry_one_table() -> None:
    table = 2 * 128256 * 8192
    blocks = LLAMA_70B.parameters - table
    assert weights_bytes(request(pipeline_parallel=2), LLAMA_70B, "tensorrt_llm") == blocks // 2 + table
    assert weights_bytes(request(pipeline_parallel=2, tensor_parallel=2), LLAMA_70B, "tensorrt_llm") == blocks // 4 + table


@given(
    tensor_parallel=st.sampled_from([1, 2, 4, 8]),
    pipeline_parallel=st.sampled_from([1, 2, 4]),
    weights=st.sampled_from(["none", "fp8", "nvfp4", "int8", "int8_sq", "int4", "int4_awq"]),
)
def test_ranks_together_hold_at_least_the_whole_model(tensor_parallel: int, pipeline_parallel: int, weights: str) -> None:
    split = request(weights=weights, tensor_parallel=tensor_parallel, pipeline_parallel=pipeline_parallel)
    whole = weights_bytes(request(weights=weights), LLAMA_70B, "tensorrt_llm_pytorch")
    assert weights_bytes(split, LLAMA_70B, "tensorrt_llm_pytorch") * tensor_parallel * pipeline_parallel >= whole


def test_activations_grow_with_the_pass_and_logits_with_batch_and_drafts() -> None:
    logits = 2 * 4 * 16 * 6 * 128256
    assert activation_bytes(request(), LLAMA_70B) == 2 * 8192 * 8192 * 11 + logits
    assert activation_bytes(request(tensor_parallel=4), LLAMA_70B) == 2 * 8192 * 8192 * 5 + logits
    assert activation_bytes(request(tensor_parallel=3), LLAMA_70B) == int(2 * 8192 * 8192 * 6.5) + logits
    assert activation_bytes(request(max_batched_tokens=64), LLAMA_70B) == 70 * 2**20 + logits


def test_tokens_of_one_h200_agree_with_aiconfigurator() -> None:
    """Its estimate for a 70B in FP8 on 141 GiB at 0.9 of the free memory, batch 1 and no draft: 403799 tokens."""
    memory = engine_memory(request(max_batch_size=1, max_draft_tokens=0), LLAMA_70B, "tensorrt_llm")
    free_bytes = 141 * GIB - memory.weights_bytes - memory.activation_bytes - memory.other_bytes
    assert free_bytes * 0.9 / memory.kv_bytes_per_token == pytest.approx(403799, rel=1e-4)


def test_a_rank_among_several_holds_buffers_of_nccl() -> None:
    alone, two, sixteen = (engine_memory(request(tensor_parallel=tp), LLAMA_70B, "tensorrt_llm").other_bytes for tp in (1, 2, 16))
    assert (two - alone, sixteen - alone) == (358612992, 411041792)


@pytest.mark.parametrize(("stored", "word"), [("", "bf16"), ("FP8", "fp8"), ("SOMETHING", "bf16")])
def test_auto_is_what_the_checkpoint_says_and_else_16_bits(stored: str, word: str) -> None:
    memory = engine_memory(request(kv_cache="auto"), LLAMA_8B, "tensorrt_llm", StoredFormat("modelopt", "FP8", stored))
    assert memory.kv_cache == word
    assert memory.kv_bytes_per_token == (128 if word == "bf16" else 64) * KIB


def test_calibrating_a_70b_takes_more_than_210_gb_of_device_memory() -> None:
    needs = build_needs(request(), LLAMA_70B, "tensorrt_llm")
    assert 210e9 < needs.device_memory_bytes < 215e9
    assert build_needs(request(tensor_parallel=4), LLAMA_70B, "tensorrt_llm").device_memory_bytes == needs.device_memory_bytes // 4
    assert needs.host_memory_bytes == 2 * LLAMA_70B.parameters
    assert needs.disk_bytes == 2 * weights_bytes(request(), LLAMA_70B, "tensorrt_llm")


@pytest.mark.parametrize(
    "stored",
    [
        StoredFormat("modelopt", "FP8"),
        StoredFormat("modelopt", "MIXED_PRECISION"),
        StoredFormat("huggingface", "FP8_PER_CHANNEL_PER_TOKEN"),
        StoredFormat("huggingface", "FP8_BLOCK_SCALES"),
        StoredFormat("tensorrt_llm", "FP8"),
    ],
)
def test_a_checkpoint_that_is_quantized_already_is_not_calibrated(stored: StoredFormat) -> None:
    needs = build_needs(request(), LLAMA_70B, "tensorrt_llm", stored)
    assert needs.device_memory_bytes == weights_bytes(request(), LLAMA_70B, "tensorrt_llm") + activation_bytes(request(), LLAMA_70B)


def test_an_engine_is_only_copied() -> None:
    needs = build_needs(request(tensor_parallel=2), LLAMA_70B, "tensorrt_llm", StoredFormat("tensorrt_llm_engine", "FP8"))
    assert needs == BuildNeeds(0, 2 * weights_bytes(request(tensor_parallel=2), LLAMA_70B, "tensorrt_llm"))
