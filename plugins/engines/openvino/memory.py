"""Memory of an engine on this lane, by formula; the tests compare it with what the runtime allocates."""

from builder.api import EngineMemory, EngineRequest, ModelShape
from plugins.engines.openvino.kv_cache import WORDS, bytes_per_token
from plugins.engines.openvino.widths import pinned_widths

WEIGHT_BYTES = {"none": 4.0, "int8": 1.0, "int4": 0.625}
"""Bytes per parameter: float32; 8 bits; 4 bits with a scale and a zero point for each group of 64, the most sensitive fifth kept at 8."""


def engine_memory(request: EngineRequest, shape: ModelShape) -> EngineMemory:
    """Weights, keys and values of all layers for one token, and the weights of the models compiled for a fixed width."""
    kv_bytes = bytes_per_token(WORDS[request.kv_cache], shape.layers, shape.kv_heads, shape.head_dim)
    weights_bytes = int(shape.parameters * WEIGHT_BYTES[request.weights])
    copies = len(pinned_widths(request.role, request.max_draft_tokens, weights_bytes))
    return EngineMemory(weights_bytes, kv_bytes, copies * weights_bytes)
