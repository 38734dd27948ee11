"""An engine result to the output tensors of the tensorrtllm contract. Knows nothing of Triton."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plugins.engines.openvino.triton_backend.parse import ParsedRequest

Array = npt.NDArray[Any]


def outputs(request: ParsedRequest, result: Any, wanted: frozenset[str], tokens_per_block: int) -> dict[str, Array]:
    """The arrays that were asked for, with the batch dimension."""
    ids = result.output_ids if request.exclude_input else (*request.input_ids, *result.output_ids)
    drafted, accepted = result.drafted_tokens, result.accepted_tokens
    makers: dict[str, Callable[[], Array]] = {
        "output_ids": lambda: np.array(ids, dtype=np.int32).reshape(1, 1, -1),
        "sequence_length": lambda: _integer(len(ids)),
        "total_draft_tokens": lambda: _integer(drafted),
        "total_accepted_draft_tokens": lambda: _integer(accepted),
        "acceptance_rate": lambda: np.array([[accepted / drafted if drafted else 0.0]], dtype=np.float32),
        "num_input_tokens": lambda: _integer(len(request.input_ids)),
        "num_output_tokens": lambda: _integer(len(result.output_ids)),
        "batch_index": lambda: _integer(0),
        "sequence_index": lambda: _integer(0),
        "kv_cache_alloc_new_blocks": lambda: _integer(result.new_blocks),
        "kv_cache_reused_blocks": lambda: _integer(result.reused_tokens // tokens_per_block),
        "kv_cache_alloc_total_blocks": lambda: _integer(result.total_blocks),
        "context_logits": lambda: _logits(result.context_logits, (1,)),
        "generation_logits": lambda: _logits(result.generation_logits, (1, 1)),
        "output_log_probs": lambda: np.array(result.log_probs, dtype=np.float32).reshape(1, 1, -1),
        "cum_log_probs": lambda: np.array([[sum(result.log_probs)]], dtype=np.float32),
    }
    return {name: makers[name]() for name in makers if name in wanted and _is_there(name, request, result)}


def _is_there(name: str, request: ParsedRequest, result: Any) -> bool:
    """Upstream leaves out what was not asked for by its flag."""
    if name == "context_logits":
        return result.context_logits is not None
    if name == "generation_logits":
        return result.generation_logits is not None
    return request.want_log_probs if name in ("output_log_probs", "cum_log_probs") else True


def _integer(value: int) -> Array:
    return np.array([[value]], dtype=np.int32)


def _logits(logits: Array, lead: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(logits, dtype=np.float32).reshape(*lead, *logits.shape)
