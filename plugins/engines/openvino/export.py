"""From a Hugging Face checkpoint to a stateful OpenVINO model that the paged-attention transformation recognizes.

The transformation (OpenVINO 2026.4) matches a graph whose past is ReadValue, with an initialiser, -> Gather(beam_idx) -> Concat, and whose
attention has a mask input. Any decoder-only model whose attention goes through transformers' AttentionInterface is traced this way.
"""

import warnings
from pathlib import Path
from typing import Any

from plugins.engines.openvino.head import shorten_head

ATTENTION = "tandem_paged"
INPUTS = ("input_ids", "attention_mask", "position_ids", "beam_idx")
_TRACED_PAST_TOKENS = 3
_TRACED_NEW_TOKENS = 2


def export(checkpoint: Path, head_ids: list[int] | None = None) -> Any:
    """Stateful OpenVINO model in float32, its output layer cut to `head_ids`. What torch, transformers and OpenVINO raise is passed on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tracing warns of every shape that becomes a constant; logits are compared instead
        hf_model = _load(checkpoint)
        if head_ids is not None:
            shorten_head(hf_model, head_ids)
        model = _trace(hf_model)
    _make_stateful(model, hf_model.config)
    return model


def head_dim(config: Any) -> int:
    """Size of one attention head of a transformers configuration."""
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)


def kv_heads(config: Any) -> int:
    """Key-value heads of a transformers configuration."""
    return int(getattr(config, "num_key_value_heads", None) or config.num_attention_heads)


def _load(checkpoint: Path) -> Any:
    import torch
    from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    AttentionInterface.register(ATTENTION, _attention)
    AttentionMaskInterface.register(ATTENTION, _mask)
    config = AutoConfig.from_pretrained(checkpoint)
    experts = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    # the grouped experts of transformers 5 have an operation that OpenVINO does not convert
    extra = {"experts_implementation": "batched_mm"} if experts else {}
    return AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation=ATTENTION, **extra).eval()


def _attention(module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, scaling: Any = None, **options: Any) -> Any:
    """Attention as the transformation wants to see it: heads repeated, one scaled dot product with a mask."""
    import torch

    for name in ("softcap", "s_aux"):
        if options.get(name) is not None:
            raise NotImplementedError(f"the model's attention uses {name}, which paged attention on CPU does not have")
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


def _step_module(hf_model: Any, layers: int) -> Any:
    """A module whose inputs and outputs are tensors only: ids, mask, positions, beam order, past -> logits, present."""
    import torch
    from transformers.cache_utils import DynamicCache, DynamicLayer

    def filled_layer(keys: Any, values: Any) -> Any:
        layer = DynamicLayer()  # filled by hand: a lazy one would trace an empty concatenation
        layer.keys, layer.values = keys, values
        layer.is_initialized, layer.dtype, layer.device = True, keys.dtype, keys.device
        return layer

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = hf_model

        def forward(self, input_ids: Any, attention_mask: Any, position_ids: Any, beam_idx: Any, *past: Any) -> Any:
            cache = DynamicCache()
            ordered = [state.index_select(0, beam_idx) for state in past]
            cache.layers = [filled_layer(ordered[2 * i], ordered[2 * i + 1]) for i in range(layers)]
            cache.layer_class_to_replicate = None
            out = self.model(
                input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True
            )
            return (out.logits, *(state for layer in cache.layers for state in (layer.keys, layer.values)))

    return Step()


def _trace(hf_model: Any) -> Any:
    import openvino as ov
    import torch

    config = hf_model.config
    layers, heads, size = config.num_hidden_layers, kv_heads(config), head_dim(config)
    past, new = _TRACED_PAST_TOKENS, _TRACED_NEW_TOKENS
    example = (
        torch.ones(1, new, dtype=torch.long),
        torch.ones(1, past + new, dtype=torch.long),
        torch.arange(past, past + new)[None],
        torch.zeros(1, dtype=torch.long),
        *(torch.zeros(1, heads, past, size) for _ in range(2 * layers)),
    )
    with torch.no_grad():
        return ov.convert_model(_step_module(hf_model, layers), example_input=example)


def _state_names(layers: int, word: str) -> list[str]:
    return [f"{word}.{i}.{state}" for i in range(layers) for state in ("key", "value")]


def _make_stateful(model: Any, config: Any) -> None:
    import openvino as ov
    from openvino._offline_transformations import apply_make_stateful_transformation

    layers = config.num_hidden_layers
    past, present = _state_names(layers, "past"), _state_names(layers, "present")
    state_shape = [-1, kv_heads(config), -1, head_dim(config)]
    shapes = [[-1, -1], [-1, -1], [-1, -1], [-1], *(state_shape for _ in past)]
    for port, name, shape in zip(model.inputs, (*INPUTS, *past), shapes, strict=True):
        port.get_tensor().set_names({name})
        port.get_node().set_partial_shape(ov.PartialShape(shape))
    for port, name in zip(model.outputs, ("logits", *present), strict=True):
        port.get_tensor().set_names({name})
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, dict(zip(past, present, strict=True)))
    _initialise_states(model)


def _initialise_states(model: Any) -> None:
    """Give each state a start value (an empty past), without which the paged transformation does not match."""
    from openvino import opset13 as op

    batch = op.gather(op.shape_of(model.input("input_ids"), output_type="i64"), op.constant([0]), op.constant(0))
    for node in model.get_ops():
        if node.get_type_name() == "ReadValue":
            sizes = [op.constant([d.min_length], dtype="int64") for d in node.get_output_partial_shape(0)]
            zero = op.constant(0.0, dtype=node.get_output_element_type(0).to_dtype())
            node.set_arguments([op.broadcast(zero, op.concat([batch, *sizes[1:]], axis=0))])
    model.validate_nodes_and_infer_types()
