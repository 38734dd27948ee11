"""The outputs of tensorrt_llm_bls as arrays, by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from triton_repo.tensorrt_llm_bls.loop import Totals

Array = npt.NDArray[Any]


@dataclass
class Times:
    """Wall clock of one request in nanoseconds; 0 when it did not happen."""

    arrival_ns: int = 0
    first_scheduled_ns: int = 0
    first_token_ns: int = 0
    last_token_ns: int = 0


@dataclass(frozen=True)
class Figures:
    """What the last response says about the whole request."""

    totals: Totals
    times: Times
    num_input_tokens: int
    num_output_tokens: int
    kv_cache: Mapping[str, int] = field(default_factory=dict)


def piece(text: str, tokens: list[int], row: int, wanted: frozenset[str]) -> dict[str, Array]:
    """Outputs of every response: `text_output` [1, 1] and `output_ids` [1, n], only what is new; `batch_index` [1, 1], of which prompt."""
    arrays: dict[str, Array] = {}
    if "batch_index" in wanted:
        arrays["batch_index"] = np.array([[row]], dtype=np.int32)
    if "text_output" in wanted:
        arrays["text_output"] = np.array([[text.encode("utf-8")]], dtype=np.object_)
    if "output_ids" in wanted:
        arrays["output_ids"] = np.array([tokens], dtype=np.int32).reshape(1, -1)
    return arrays


def figures(values: Figures, wanted: frozenset[str]) -> dict[str, Array]:
    """Outputs of the last response, each [1, 1]; only those asked for."""
    totals, times = values.totals, values.times
    integers = {
        "sequence_index": 0,
        "num_rounds": totals.rounds,
        "total_draft_tokens": totals.drafted,
        "total_accepted_draft_tokens": totals.accepted,
        "total_lookup_tokens": totals.lookup_drafted,
        "total_accepted_lookup_tokens": totals.lookup_accepted,
        "num_input_tokens": values.num_input_tokens,
        "num_output_tokens": values.num_output_tokens,
        **values.kv_cache,
    }
    long_integers = {
        "draft_time_us": round(totals.draft_s * 1e6),
        "target_time_us": round(totals.target_s * 1e6),
        "arrival_time_ns": times.arrival_ns,
        "first_scheduled_time_ns": times.first_scheduled_ns,
        "first_token_time_ns": times.first_token_ns,
        "last_token_time_ns": times.last_token_ns,
    }
    arrays: dict[str, Array] = {name: np.array([[value]], dtype=np.int32) for name, value in integers.items() if name in wanted}
    arrays.update({name: np.array([[value]], dtype=np.int64) for name, value in long_integers.items() if name in wanted})
    if "acceptance_rate" in wanted:
        arrays["acceptance_rate"] = np.array([[totals.acceptance_rate]], dtype=np.float32)
    return arrays
