"""Memory of a TensorRT-LLM engine on each of its GPUs, by formula. Figures, their sources and how sure they are: memory.yaml."""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from builder.api import BuildNeeds, EngineMemory, EngineRequest, ModelShape, StoredFormat
from plugins.nvidia.lanes import find_lane, is_fixed

SIXTEEN_BIT_BYTES = 2
NUMBERS_PER_SCALE = 16
"""NVFP4 keeps one 8-bit scale for so many numbers."""


def engine_memory(request: EngineRequest, shape: ModelShape, lane: str, stored: StoredFormat | None = None) -> EngineMemory:
    """Per device: weights of the largest rank, keys and values of one token, activations at the limits, runtime and NCCL.

    `lane` is a key of memory.yaml's lanes.
    """
    kv_cache, facts = find_lane(lane).cache_word(request.kv_cache, stored or StoredFormat()), _facts()
    nccl_bytes = _of_size(facts["nccl_bytes"]["by_tensor_parallel"], request.tensor_parallel)
    return EngineMemory(
        weights_bytes=weights_bytes(request, shape, lane),
        kv_bytes_per_token=kv_bytes_per_token(shape, kv_cache, request.tensor_parallel, request.pipeline_parallel),
        other_bytes=facts["runtime_bytes"][request.role] + nccl_bytes,
        activation_bytes=activation_bytes(request, shape),
        kv_cache=kv_cache,
        lookup_bytes=lookup_bytes(request, shape, lane),
    )


def build_needs(request: EngineRequest, shape: ModelShape, lane: str, stored: StoredFormat | None = None) -> BuildNeeds:
    """Peak of quantizing and building. A checkpoint that already stores the asked weights is not calibrated; an engine is only copied.

    Host: the 16-bit checkpoint. Disk: the quantized checkpoint and the engine, of all ranks. Device: calibration spread over the ranks'
    GPUs, or else the engine itself.
    """
    facts, ranks = _facts()["build"], request.tensor_parallel * request.pipeline_parallel
    rank_bytes = weights_bytes(request, shape, lane)
    stored = stored or StoredFormat()
    if stored.kind == "tensorrt_llm_engine":
        return BuildNeeds(0, ranks * rank_bytes)
    device_bytes = rank_bytes + activation_bytes(request, shape)
    if request.weights in facts["calibrated"] and not is_fixed(stored):
        device_bytes = max(device_bytes, int(shape.parameters * facts["calibration_bytes_per_parameter"] / ranks))
    return BuildNeeds(int(shape.parameters * facts["host_bytes_per_parameter"]), 2 * ranks * rank_bytes, device_bytes)


def weights_bytes(request: EngineRequest, shape: ModelShape, lane: str) -> int:
    """Weights of the largest rank.

    Tensor parallelism divides the blocks and the output layer; pipeline parallelism deals out whole layers, the embedding to the first
    stage, which is thus the largest, and the output layer to the last.
    """
    traits, tensor_parallel = _facts()["lanes"][lane], request.tensor_parallel
    embedding = shape.embedding_parameters or shape.vocab_size * shape.hidden_size
    head = shape.vocab_size * shape.hidden_size
    blocks = shape.parameters - embedding - (0 if shape.tied_head else head)
    block_bytes: float = blocks * _facts()["weights_bytes_per_parameter"]["values"][request.weights] / tensor_parallel
    first: float = SIXTEEN_BIT_BYTES * embedding / (tensor_parallel if traits["embedding_sharded"] else 1)
    last: float = SIXTEEN_BIT_BYTES * head / tensor_parallel
    if request.pipeline_parallel > 1:
        return math.ceil(block_bytes * largest_stage(shape.layers, request.pipeline_parallel) / shape.layers + first)
    return math.ceil(block_bytes + first + (last if traits["tied_head_copied"] or not shape.tied_head else 0))


def lookup_bytes(request: EngineRequest, shape: ModelShape, lane: str) -> int:
    """The embedding on the largest rank; 0 where it is the output layer too."""
    traits = _facts()["lanes"][lane]
    if shape.tied_head and not traits["tied_head_copied"]:
        return 0
    embedding = shape.embedding_parameters or shape.vocab_size * shape.hidden_size
    return math.ceil(SIXTEEN_BIT_BYTES * embedding / (request.tensor_parallel if traits["embedding_sharded"] else 1))


def kv_bytes_per_token(shape: ModelShape, kv_cache: str, tensor_parallel: int = 1, pipeline_parallel: int = 1) -> int:
    """Bytes that one token adds to one rank's cache.

    Tensor parallelism divides the heads; with more ranks than heads, each rank keeps one. A latent row of MLA is on every rank.
    Pipeline parallelism counts the layers of the largest stage.
    """
    layers = largest_stage(shape.layers, pipeline_parallel)
    if shape.kv_lora_rank:
        return layers * _row_bytes(shape.kv_lora_rank + shape.rope_head_dim, kv_cache)
    heads = -(-shape.kv_heads // tensor_parallel)
    return 2 * layers * heads * _row_bytes(shape.head_dim, kv_cache)


def activation_bytes(request: EngineRequest, shape: ModelShape) -> int:
    """Activations of a pass of `max_batched_tokens`, and the logits of every sequence's drafts and own token."""
    facts = _facts()["activations"]
    factor = _of_size(facts["experts" if shape.experts else "dense"], request.tensor_parallel)
    hidden = shape.hidden_size or shape.heads * shape.head_dim
    activations: int = max(facts["minimum_bytes"], int(SIXTEEN_BIT_BYTES * request.max_batched_tokens * hidden * factor))
    rows = request.max_batch_size * (request.max_draft_tokens + 1)
    return activations + int(facts["logits_copies"] * 4 * rows * shape.vocab_size)


def largest_stage(layers: int, pipeline_parallel: int) -> int:
    """Layers of the largest pipeline stage."""
    return -(-layers // pipeline_parallel)


def _row_bytes(numbers: int, kv_cache: str) -> int:
    """One head's key or value of one token, with its scales."""
    scales = -(-numbers // NUMBERS_PER_SCALE) if kv_cache == "nvfp4" else 0
    bits: int = _facts()["kv_bits_per_number"]["values"][kv_cache]
    return -(-numbers * bits // 8) + scales


def _of_size(values: Mapping[int, Any], size: int) -> Any:
    """The value of the greatest key that is not above `size`."""
    return values[max(key for key in values if key <= size)]


@cache
def _facts() -> Mapping[str, Any]:
    content: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return content
