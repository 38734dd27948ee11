"""What tensors are called: which is the embedding, which the output layer, to which layer one belongs, and what is no weight at all."""

import re
from collections.abc import Sequence

from builder.checkpoint.safetensors import Tensor

EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "embed_in.weight",
    "tok_embeddings.weight",
    "vocab_embedding.weight",
    "token_embd.weight",
    "tokens_embed.weight",
    "transformer.w.weight",
)
POSITIONS = ("wpe.weight", "embed_positions.weight", "position_embedding.weight", "positions_embed.weight")
HEADS = ("lm_head", "embed_out", "output")
OTHER_PARTS = re.compile(r"(^|\.)(vision_tower|vision_model|visual|audio_tower|multi_modal_projector|vision_embed_tokens|image_newline)\.")
"""Parts of a model of several media that its language model has nothing to do with."""
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|blk)\.(\d+)\.")
SCALES = (
    "qzeros scales g_idx weight_scale weight_scale_2 weight_scale_inv input_scale weight_zero_point weight_shape weight_g_idx "
    "weight_global_scale input_global_scale k_scale v_scale q_scale kv_scale absmax quant_map nested_absmax nested_quant_map SCB "
    "weight_format weights_scaling_factor activation_scaling_factor prequant_scaling_factor pre_quant_scale kv_cache_scaling_factor "
    "kv_cache_rcp_scaling_factor k_cache_scaling_factor v_cache_scaling_factor per_channel_scale weights_block_scaling_factor "
    "weights_block_scaling_factor_interleaved weights_global_scaling_factor activation_global_scaling_factor inv_freq masked_bias"
)
"""Last parts of the names of quantization's scales and of buffers; none of them is a weight."""
NO_WEIGHTS = frozenset(SCALES.split())
PACKED_32 = frozenset({"qweight", "weight_packed"})
"""Several weights in each 32-bit number (AWQ, GPTQ, compressed-tensors)."""


def embedding_of(tensors: Sequence[Tensor]) -> Tensor | None:
    """The input embedding: the one with the shortest name, which is the language model's own."""
    found = [t for t in tensors if t.name.endswith(EMBEDDINGS) and not OTHER_PARTS.search(t.name)]
    return min(found, key=lambda t: len(t.name), default=None)


def is_head(name: str) -> bool:
    """Whether the tensor is (part of) the output layer."""
    parts = name.split(".")
    return len(parts) > 1 and parts[-2] in HEADS and LAYER.search(name) is None


def layer_of(name: str) -> int | None:
    """Number of the layer that a tensor belongs to."""
    found = LAYER.search(name)
    return int(found.group(1)) if found else None


def weights_in(tensor: Tensor, bits: int) -> int:
    """Weights that a tensor stores: what is packed is counted one by one, scales and buffers are not. `bits` of a packed weight."""
    last = tensor.name.rsplit(".", 1)[-1]
    if last in NO_WEIGHTS or last.startswith("bitsandbytes__") or last.endswith("_scales") or _is_mask(tensor, last):
        return 0
    if tensor.dtype == "I32":
        return tensor.elements * 32 // bits if last in PACKED_32 else 0
    if tensor.dtype == "U8" and (bits == 4 or last.endswith("_blocks")):
        return tensor.elements * 2
    if tensor.dtype == "I8" and bits == 4:
        return tensor.elements * 2
    return tensor.elements


def _is_mask(tensor: Tensor, last: str) -> bool:
    return last == "bias" and len(tensor.shape) == 4
