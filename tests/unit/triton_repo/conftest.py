"""A stand-in for `triton_python_backend_utils`: the part the served models use, with models as Python functions."""

import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

Model = Callable[[Mapping[str, Any]], "Mapping[str, Any] | TritonError"]


@dataclass
class Tensor:
    label: str
    array: Any

    def name(self) -> str:
        return self.label

    def as_numpy(self) -> Any:
        return self.array


@dataclass
class TritonError:
    text: str
    kind: int = 0

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG, UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = range(8)

    def message(self) -> str:
        return self.text

    def code(self) -> int:
        return self.kind


@dataclass
class Response:
    tensors: list[Tensor] = field(default_factory=list)
    failure: TritonError | None = None

    def has_error(self) -> bool:
        return self.failure is not None

    def error(self) -> TritonError | None:
        return self.failure

    def output_tensors(self) -> list[Tensor]:
        return self.tensors

    def arrays(self) -> dict[str, Any]:
        return {tensor.name(): tensor.as_numpy() for tensor in self.tensors}


@dataclass
class Sender:
    responses: list[tuple[Response, int]] = field(default_factory=list)
    cancelled_after: int | None = None

    def send(self, response: Response, flags: int = 0) -> None:
        self.responses.append((response, flags))

    def is_cancelled(self) -> bool:
        return self.cancelled_after is not None and len(self.responses) >= self.cancelled_after


@dataclass
class Request:
    """A request as Triton hands it to a model."""

    tensors: dict[str, Any]
    outputs: tuple[str, ...] = ()
    sender: Sender = field(default_factory=Sender)

    def requested_output_names(self) -> list[str]:
        return list(self.outputs)

    def request_id(self) -> str:
        return "r1"

    def get_response_sender(self) -> Sender:
        return self.sender

    def inputs(self) -> list[Tensor]:
        return [Tensor(name, array) for name, array in self.tensors.items()]


@dataclass
class FakeTriton:
    """The module object. `models` answers calls by model name; `calls` keeps what was asked; `log` what was said."""

    models: dict[str, Model] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    Tensor = Tensor
    TritonError = TritonError
    Request = Request
    Sender = Sender
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1

    @property
    def Logger(self) -> Any:  # noqa: N802 - upstream's name
        return types.SimpleNamespace(log_info=self.log.append, log_warn=self.log.append, log_error=self.log.append)

    def InferenceResponse(self, output_tensors: Any = (), error: TritonError | None = None) -> Response:  # noqa: N802
        return Response(list(output_tensors), error)

    def InferenceRequest(self, model_name: str, requested_output_names: list[str], inputs: list[Tensor], request_id: str) -> Any:  # noqa: N802
        def execute() -> Response:
            arrays = {tensor.name(): tensor.as_numpy() for tensor in inputs}
            self.calls.append((model_name, arrays))
            answer = self.models[model_name](arrays)
            if isinstance(answer, TritonError):
                return Response(failure=answer)
            return Response([Tensor(name, array) for name, array in answer.items() if name in requested_output_names])

        return types.SimpleNamespace(exec=execute)

    def get_input_tensor_by_name(self, request: Request, name: str) -> Tensor | None:
        return Tensor(name, request.tensors[name]) if name in request.tensors else None


@pytest.fixture
def triton() -> FakeTriton:
    return FakeTriton()


@pytest.fixture
def pb_utils(triton: FakeTriton) -> Iterator[FakeTriton]:
    """The stand-in, importable under upstream's name while a test runs."""
    name = "triton_python_backend_utils"
    before = sys.modules.get(name)
    sys.modules[name] = triton  # type: ignore[assignment]
    try:
        yield triton
    finally:
        sys.modules.pop(name)
        if before is not None:
            sys.modules[name] = before
        for module in [m for m in sys.modules if m.startswith("triton_repo.") and m.endswith(".model")]:
            sys.modules.pop(module)


@pytest.fixture
def text() -> Callable[..., Any]:
    """Words as a string tensor of one row."""
    return lambda *words: np.array([[word.encode() for word in words]], dtype=np.object_)
