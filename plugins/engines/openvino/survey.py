"""What a model says when it runs: how its layers attend, and its logits for a few tokens, with which the engine is compared later."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from builder.api import StageError

PROBE_TOKENS = 40
"""More than a block, so that a probe crosses into a second one."""

_SURVEY = "tandem_survey"
_UNKNOWN = ("softcap", "s_aux", "position_bias")
"""Options of transformers' attention interface that paged attention on CPU lacks."""


@dataclass(frozen=True)
class Attention:
    """How one layer attends. `window`: tokens that a token sees, itself among them; 0 for all before it."""

    kv_heads: int
    key_size: int
    value_size: int
    window: int


@dataclass(frozen=True)
class Probe:
    """Token ids and the model's logits for them [tokens, head]."""

    ids: tuple[int, ...]
    logits: NDArray[np.float32]


def attention_windows(hf_model: Any, kv_heads: int, head_dim: int) -> list[int]:
    """Window of each layer, in the order in which they run. Raises StageError when a layer attends in a way that cannot be exported."""
    found = _attentions(hf_model)
    layers = hf_model.config.num_hidden_layers
    if len(found) != layers:
        raise _refused(f"it attends {len(found)} times through transformers' attention interface, with {layers} layers")
    odd = next((a for a in found if (a.kv_heads, a.key_size, a.value_size) != (kv_heads, head_dim, head_dim)), None)
    if odd is not None:
        raise _refused(f"a layer caches {odd.kv_heads} heads of {odd.key_size} and {odd.value_size}, not {kv_heads} of {head_dim}")
    return [a.window for a in found]


def probe(hf_model: Any, vocab_size: int) -> Probe:
    """The model's own logits, by transformers' plainest attention, for tokens drawn once and for all."""
    import torch

    ids = np.random.default_rng(0).integers(0, vocab_size, PROBE_TOKENS)
    with torch.no_grad(), _attending(hf_model, "eager"):
        logits = hf_model(input_ids=torch.from_numpy(ids)[None], use_cache=False).logits[0].float().numpy()
    return Probe(tuple(ids.tolist()), logits)


def _attentions(hf_model: Any) -> list[Attention]:
    import torch
    from transformers import AttentionInterface

    found: list[Attention] = []

    def attend(module: Any, query: Any, key: Any, value: Any, *_: Any, **options: Any) -> Any:
        unknown = next((name for name in _UNKNOWN if options.get(name) is not None), None)
        if unknown:
            raise _refused(f"its attention uses {unknown}, which paged attention on CPU does not have")
        found.append(Attention(key.shape[1], key.shape[3], value.shape[3], options.get("sliding_window") or 0))
        return query.new_zeros(*query.shape[:-1], value.shape[3]).transpose(1, 2), None

    AttentionInterface.register(_SURVEY, attend)
    with torch.no_grad(), _attending(hf_model, _SURVEY):
        hf_model(input_ids=torch.zeros(1, 1, dtype=torch.long), use_cache=False)
    return found


@contextmanager
def _attending(hf_model: Any, implementation: str) -> Iterator[None]:
    """The model with another attention function for a while."""
    before = hf_model.config._attn_implementation  # noqa: SLF001 - there is no public way to ask
    hf_model.set_attn_implementation(implementation)
    try:
        yield
    finally:
        hf_model.set_attn_implementation(before)


def _refused(reason: str) -> StageError:
    return StageError("ENGINE-ARCHITECTURE", f"The CPU engine cannot run this model: {reason}.")
