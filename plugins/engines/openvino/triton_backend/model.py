"""Triton's entry to the CPU backend `tensorrtllm`; install as BACKENDS/tensorrtllm/model.py, where this distribution is installed."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from plugins.engines.openvino.triton_backend.backend import Answer, Backend, Counts, IncomingRequest, Refusal

COUNTERS = {
    "generated_tokens": "Tokens that the engine made",
    "drafted_tokens": "Draft tokens that the engine verified",
    "accepted_tokens": "Draft tokens that the engine took",
    "reused_tokens": "Prompt tokens whose keys and values were in the cache",
}


class TritonPythonModel:
    """Not decoupled: execute answers a whole batch at once."""

    def initialize(self, args: Mapping[str, str]) -> None:
        config = json.loads(args["model_config"])
        parameters = {key: value.get("string_value", "") for key, value in config.get("parameters", {}).items()}
        labels = {"model": args["model_name"], "version": args["model_version"]}
        self._families = {
            name: pb_utils.MetricFamily(name=f"tandem_{name}_total", description=text, kind=pb_utils.MetricFamily.COUNTER)
            for name, text in COUNTERS.items()
        }
        self._families["kv_blocks"] = pb_utils.MetricFamily(
            name="tandem_kv_blocks", description="KV cache blocks of the last batch", kind=pb_utils.MetricFamily.GAUGE
        )
        self._metrics = {name: family.Metric(labels=labels) for name, family in self._families.items()}
        self._backend = Backend.load(parameters, self._count)

    def execute(self, requests: Sequence[Any]) -> list[Any]:
        answers = self._backend.answer(
            [IncomingRequest(_reader(request), frozenset(request.requested_output_names())) for request in requests]
        )
        return [_response(answer) for answer in answers]

    def _count(self, counts: Counts) -> None:
        for name in COUNTERS:
            value = getattr(counts, name)
            if value:
                self._metrics[name].increment(value)
        self._metrics["kv_blocks"].set(counts.kv_blocks)


def _reader(request: Any) -> Any:
    tensors = {tensor.name(): tensor for tensor in request.inputs()}

    def read(name: str) -> Any:
        tensor = tensors.get(name)
        return None if tensor is None else tensor.as_numpy()

    return read


def _response(answer: Answer) -> Any:
    if isinstance(answer, Refusal):
        return pb_utils.InferenceResponse(error=pb_utils.TritonError(answer.message, pb_utils.TritonError.INVALID_ARG))
    return pb_utils.InferenceResponse([pb_utils.Tensor(name, array) for name, array in answer.items()])
