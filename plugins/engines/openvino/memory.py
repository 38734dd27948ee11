"""Memory of an engine on this lane, by formula; the tests compare it with what the runtime allocates."""

from builder.api import BuildNeeds, EngineMemory, EngineRequest, ModelShape
from plugins.engines.openvino.kv_cache import WORDS, bytes_per_token
from plugins.engines.openvino.widths import pinned_widths

WEIGHT_BYTES = {"none": 4.0, "int8": 1.0, "int4": 0.625}
"""Bytes per parameter: float32; 8 bits; 4 bits with a scale and a zero point for each group of 64, the most sensitive fifth kept at 8."""


BUILD_BASE_BYTES = 730_000_000
"""Peak memory of a build that is there whatever the model: torch, transformers, OpenVINO, NNCF. Measured, decisions/0007."""
BUILD_BYTES_PER_PARAMETER = 4
"""Slope of the measured peak between 135 M and 481 M parameters: twice the bf16 checkpoint."""
DISK_SHARE = 4
"""Free disk that a build asks for, in sizes of the finished weights: the staged result, and room to move it."""
KV_WORD = {"f32": "fp32", "bf16": "bf16", "u8": "int8", "u4": "int4"}


def engine_memory(request: EngineRequest, shape: ModelShape) -> EngineMemory:
    """Weights, keys and values of all layers for one token, and the weights of the models compiled for a fixed width."""
    kv_bytes = bytes_per_token(WORDS[request.kv_cache], shape.layers, shape.kv_heads, shape.head_dim)
    weights_bytes = int(shape.parameters * WEIGHT_BYTES[request.weights])
    copies = len(pinned_widths(request.role, request.max_draft_tokens, weights_bytes))
    return EngineMemory(weights_bytes, kv_bytes, copies * weights_bytes, kv_cache=KV_WORD[WORDS[request.kv_cache]])


def build_needs(request: EngineRequest, shape: ModelShape) -> BuildNeeds:
    """Peak of the worker that exports, compresses and compares; disk for the result while the old one is still there.

    A target is compared on all the compiled models that will serve it: measured 1.8 GB for the demo's target, 0.9 GB for its draft.
    """
    engine = engine_memory(request, shape)
    served_bytes = engine.weights_bytes + engine.other_bytes if request.role == "target" else 0
    host_bytes = BUILD_BASE_BYTES + BUILD_BYTES_PER_PARAMETER * shape.parameters + served_bytes
    return BuildNeeds(host_bytes, DISK_SHARE * engine.weights_bytes)
