"""From a transformers model to the OpenVINO graph of one step: ids, mask, positions, beam order, past -> logits, present.

The graph is recorded by running the model once. Linear and embedding layers are stood in for while it runs, so nothing is computed with
the weights and none is copied: they become constants that share memory with the model, in the type they are stored in.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plugins.engines.openvino.piecewise import widen

_PAST_TOKENS = 3
_NEW_TOKENS = 2
_KEPT_FORWARD = "_tandem_forward"


def trace(hf_model: Any, kv_heads: int, head_dim: int) -> Any:
    """The graph, an `openvino.Model` in float32 whose weight matrices may be 16-bit constants, converted where they are used.

    Inputs: ids [batch, new], mask [batch, past + new], positions [batch, new], beam order [batch], then key and value
    [batch, kv_heads, past, head_dim] of each layer. Outputs: logits [batch, new, vocab], then key and value of each layer.
    """
    import torch
    from openvino._offline_transformations import apply_moc_transformations
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.ts_decoder import TorchScriptPythonDecoder

    layers = hf_model.config.num_hidden_layers
    example = (
        torch.ones(1, _NEW_TOKENS, dtype=torch.long),
        torch.ones(1, _PAST_TOKENS + _NEW_TOKENS, dtype=torch.long),
        torch.arange(_PAST_TOKENS, _PAST_TOKENS + _NEW_TOKENS)[None],
        torch.zeros(1, dtype=torch.long),
        *(torch.zeros(1, kv_heads, _PAST_TOKENS, head_dim) for _ in range(2 * layers)),
    )
    hf_model.requires_grad_(False)
    with torch.no_grad(), _weights_stood_in_for(hf_model):
        # a function is recorded in half the time of a module: no script module is made of every part of the model
        step = torch.jit.trace(_step(hf_model, layers), example, check_trace=False, strict=False, _store_inputs=False)
        decoder = TorchScriptPythonDecoder(step)  # read until the conversion ends
        frontend = FrontEndManager().load_by_framework("pytorch")
        model = frontend.convert(frontend.load(decoder))
    apply_moc_transformations(model, cf=False, smart_reshape=True)
    widen(model, matrices=False)
    return model


@contextmanager
def _weights_stood_in_for(hf_model: Any) -> Iterator[None]:
    """OpenVINO's own patches for tracing: of functions it cannot convert, and of layers whose weights are 16 bits."""
    from openvino.frontend.pytorch.patch_functions import FunctionsPatcher
    from openvino.frontend.pytorch.patch_model import __make_16bit_traceable as make_16bit_traceable
    from openvino.frontend.pytorch.patch_model import unpatch_model

    make_16bit_traceable(hf_model, _KEPT_FORWARD)
    try:
        with FunctionsPatcher():
            yield
    finally:
        unpatch_model(hf_model, _KEPT_FORWARD)


def _step(hf_model: Any, layers: int) -> Any:
    """A function of tensors only."""
    from transformers.cache_utils import DynamicCache

    def step(input_ids: Any, attention_mask: Any, position_ids: Any, beam_idx: Any, *past: Any) -> Any:
        cache = DynamicCache()
        ordered = [state.index_select(0, beam_idx) for state in past]
        cache.layers = [_filled_layer(ordered[2 * i], ordered[2 * i + 1]) for i in range(layers)]
        cache.layer_class_to_replicate = None
        out = hf_model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=cache, use_cache=True)
        return (out.logits, *(state for layer in cache.layers for state in (layer.keys, layer.values)))

    return step


def _filled_layer(keys: Any, values: Any) -> Any:
    """A cache layer filled by hand: a lazy one would trace an empty concatenation."""
    from transformers.cache_utils import DynamicLayer

    layer = DynamicLayer()
    layer.keys, layer.values = keys, values
    layer.is_initialized, layer.dtype, layer.device = True, keys.dtype, keys.device
    return layer
