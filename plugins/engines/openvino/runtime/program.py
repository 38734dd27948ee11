"""One compiled model with its inputs: rewritten in place while their lengths stay the same."""

import time
from collections.abc import Sequence as SequenceOf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plugins.engines.openvino.runtime.batch import Batch
from plugins.engines.openvino.runtime.graph import SAMPLED_ROWS


class Program:
    """A compiled model, its infer request and its bound inputs."""

    def __init__(self, compiled: Any) -> None:
        self._request = compiled.create_infer_request()
        self._output = compiled.output("logits")
        self.infer_s = 0.0
        self._inputs: dict[str, NDArray[Any]] = {}
        self._longest = np.zeros((), dtype=np.int32)
        self._request.set_tensor("max_context_len", shared_tensor(self._longest))

    def bind(self, name: str, array: NDArray[Any]) -> None:
        """Let an input read and write this array from now on."""
        self._request.set_tensor(name, shared_tensor(array))

    def bind_cache(self, name: str, memory: NDArray[np.uint8], shape: SequenceOf[int], kind: Any) -> None:
        """Let a cache input of this shape and OpenVINO element type live in `memory`, whose type numpy need not know."""
        import openvino as ov

        self._request.set_tensor(name, ov.Tensor(memory, ov.Shape(shape), kind))

    def forward(self, batch: Batch, rows: list[int]) -> NDArray[np.float32]:
        """Logits [len(rows), head] of these rows of the batch; valid until the next call."""
        self._set("input_ids", batch.ids, np.int64)
        self._set("position_ids", batch.positions, np.int64)
        self._set("past_lens", batch.past, np.int32)
        self._set("subsequence_begins", batch.begins, np.int32)
        self._set("block_indices", batch.table, np.int32)
        self._set("block_indices_begins", batch.table_begins, np.int32)
        self._set(SAMPLED_ROWS, rows, np.int64)
        self._longest[...] = batch.longest_tokens
        start = time.perf_counter()
        self._request.infer(share_outputs=True)
        self.infer_s += time.perf_counter() - start
        logits: NDArray[np.float32] = self._request.get_tensor(self._output).data
        return logits[:, 0]

    def _set(self, name: str, values: list[int], dtype: type[np.signedinteger[Any]]) -> None:
        bound = self._inputs.get(name)
        if bound is None or len(bound) != len(values):
            bound = self._inputs[name] = np.empty(len(values), dtype=dtype)
            self.bind(name, bound)
        bound[:] = values


def shared_tensor(array: NDArray[Any]) -> Any:
    """An OpenVINO tensor over the array's own memory."""
    import openvino as ov

    return ov.Tensor(array, shared_memory=True)
