"""From a Hugging Face checkpoint to a stateful OpenVINO model that the paged-attention transformation recognizes.

The transformation (OpenVINO 2026.4) matches a graph whose past is ReadValue, with an initialiser, -> Gather(beam_idx) -> Concat, and whose
attention has a mask input. Any decoder-only model whose attention goes through transformers' AttentionInterface is traced this way.
"""

import warnings
from pathlib import Path
from typing import Any

from plugins.engines.openvino.head import shorten_head
from plugins.engines.openvino.loading import load_model
from plugins.engines.openvino.runtime.graph import note_windows
from plugins.engines.openvino.stateful import make_stateful
from plugins.engines.openvino.survey import attention_windows
from plugins.engines.openvino.trace import trace

ATTENTION = "tandem_paged"


def export(checkpoint: Path, head_ids: list[int] | None = None) -> Any:
    """The graph of a checkpoint, its output layer cut to `head_ids`. What torch, transformers and OpenVINO raise is passed on."""
    return to_graph(load(checkpoint, head_ids))


def load(checkpoint: Path, head_ids: list[int] | None = None) -> Any:
    """The transformers model, its output layer cut to `head_ids`, its attention replaced by the one that is exported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hf_model = _load(checkpoint)
        if head_ids is not None:
            shorten_head(hf_model, head_ids)
    return hf_model


def to_graph(hf_model: Any) -> Any:
    """Stateful OpenVINO model of a loaded one. Raises StageError when a layer attends in a way that cannot be exported.

    It computes in float32; weights that the checkpoint stores in 16 bits are constants of that type, widened where they are used.
    """
    config = hf_model.config
    layers, heads, size = config.num_hidden_layers, kv_heads(config), head_dim(config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns of every shape that becomes a constant; logits are compared instead
        windows = attention_windows(hf_model, heads, size)
        model = trace(hf_model, heads, size)
    make_stateful(model, layers, heads, size)
    note_windows(model, windows)
    return model


def head_dim(config: Any) -> int:
    """Size of one attention head of a transformers configuration."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def kv_heads(config: Any) -> int:
    """Key-value heads of a transformers configuration."""
    return int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)


def _load(checkpoint: Path) -> Any:
    from transformers import AttentionInterface, AutoConfig
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(ATTENTION, _attention)
    AttentionMaskInterface.register(ATTENTION, _mask)
    config = AutoConfig.from_pretrained(checkpoint)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    # the grouped experts of transformers 5 have an operation that OpenVINO does not convert
    extra = {"experts_implementation": "batched_mm"} if experts else {}
    return load_model(checkpoint, attn_implementation=ATTENTION, **extra)


def _attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, scaling: Any = None, **_: Any) -> Any:
    """Attention as the transformation wants to see it: heads repeated, one scaled dot product with a mask."""
    import torch

    groups = getattr(module, "num_key_value_groups", 1)
    key, value = _repeat_heads(key, groups), _repeat_heads(value, groups)
    out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scaling)
    return out.transpose(1, 2).contiguous(), None


def _repeat_heads(states: Any, groups: int) -> Any:
    if groups == 1:
        return states
    batch, heads, tokens, size = states.shape
    return states[:, :, None].expand(batch, heads, groups, tokens, size).reshape(batch, heads * groups, tokens, size)


def _mask(*_: Any, attention_mask: Any = None, **__: Any) -> Any:
    """Some mask: the transformation drops it, paged attention is causal by itself."""
    import torch

    return None if attention_mask is None else attention_mask[:, None, None, :].to(torch.float32)
