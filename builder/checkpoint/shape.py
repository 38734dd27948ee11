"""Sizes that decide memory and time: from the configuration, and from the tensors that are stored."""

from collections.abc import Sequence

from builder.api.model import ModelShape
from builder.checkpoint.geometry import Geometry
from builder.checkpoint.names import EMBEDDINGS, OTHER_PARTS, POSITIONS, is_head, layer_of, weights_in
from builder.checkpoint.safetensors import Tensor


def shape_of(geometry: Geometry, tensors: Sequence[Tensor], *, bits: int = 16, max_positions: int = 0) -> ModelShape:
    """Sizes with the counts of the stored tensors; by formula where none are stored.

    Layers beyond the configuration's count (a model's own draft layers) and parts for other media are left out.
    `bits` of a weight that is packed several to a number; 16 where none are.
    """
    text = [t for t in tensors if not OTHER_PARTS.search(t.name) and (layer_of(t.name) or 0) < geometry.layers]
    if not text:
        return _shape(geometry, *_by_formula(geometry), max_positions, bool(geometry.tied))
    heads = [t for t in text if is_head(t.name)]
    tied = bool(geometry.tied) or not heads
    total = embedding = positions = experts = 0
    for tensor in text:
        count = weights_in(tensor, bits)
        if tied and is_head(tensor.name):
            continue
        total += count
        if tensor.name.endswith(EMBEDDINGS):
            embedding += count
        elif tensor.name.endswith(POSITIONS):
            positions += count
        elif _is_of_experts(tensor, geometry.experts):
            experts += count
    return _shape(geometry, total, embedding, positions, experts, max_positions, tied)


def _shape(geometry: Geometry, total: int, embedding: int, positions: int, experts: int, max_positions: int, tied: bool) -> ModelShape:
    idle = experts - experts * geometry.experts_per_token // geometry.experts if geometry.experts and geometry.experts_per_token else 0
    return ModelShape(
        parameters=total,
        layers=geometry.layers,
        kv_heads=geometry.kv_heads,
        head_dim=geometry.head_dim,
        heads=geometry.heads,
        hidden_size=geometry.hidden_size,
        intermediate_size=geometry.intermediate_size,
        vocab_size=geometry.vocab_size,
        max_positions=max_positions or geometry.max_positions,
        embedding_parameters=embedding,
        active_parameters=total - positions - idle - (0 if tied else embedding),
        tied_head=tied,
        experts=geometry.experts,
        experts_per_token=geometry.experts_per_token,
        kv_lora_rank=geometry.kv_lora_rank,
        rope_head_dim=geometry.rope_head_dim,
    )


def _is_of_experts(tensor: Tensor, experts: int) -> bool:
    """One expert's own tensor, or one that holds all experts in its first dimension."""
    return experts > 1 and (".experts." in tensor.name or (len(tensor.shape) == 3 and tensor.shape[0] == experts))


def _by_formula(geometry: Geometry) -> tuple[int, int, int, int]:
    """All weights, the embedding's, the positions' (0: rotary) and the experts', for layers as llama's: gated MLP, no biases."""
    hidden = geometry.hidden_size
    attention = 2 * hidden * (geometry.heads + geometry.kv_heads) * geometry.head_dim
    embedding = geometry.vocab_size * hidden
    norms = (2 * geometry.layers + 1) * hidden
    experts = geometry.layers * geometry.experts * 3 * hidden * geometry.expert_intermediate_size
    dense = geometry.layers * (geometry.experts * hidden if geometry.experts else 3 * hidden * geometry.intermediate_size)
    total = embedding * (1 if geometry.tied else 2) + norms + geometry.layers * attention + dense + experts
    return total, embedding, 0, experts
