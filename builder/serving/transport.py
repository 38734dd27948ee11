"""How tensors reach a server: a protocol, the gRPC implementation, and a scripted one for tests."""

import queue
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from builder.errors import MissingError, StageError, TandemError

if TYPE_CHECKING:
    import numpy as np

Answer = Mapping[str, "np.ndarray[Any, Any]"]
"""Output tensors by name."""


@dataclass(frozen=True)
class Tensor:
    """One input: values and Triton's datatype word (`INT32`, `FP32`, `BOOL`, `BYTES`, `UINT64`)."""

    name: str
    values: "np.ndarray[Any, Any]"
    datatype: str


class Transport(Protocol):
    """What the client needs from a connection. All raise MissingError SERVER-UNREACHABLE, StageError SERVER-REQUEST and DEADLINE."""

    def infer(self, model: str, inputs: Sequence[Tensor], outputs: Sequence[str], timeout_s: float) -> Answer:
        """One request, one answer. No `outputs` means all."""

    def stream(self, model: str, inputs: Sequence[Tensor], timeout_s: float, request_id: str = "") -> Generator[Answer, None, None]:
        """The answers of a decoupled model, as they come. Closing the iterator before its end cancels the request."""

    def ready(self) -> bool:
        """Whether the server says that it and its models are ready; False when nobody answers."""

    def identity(self) -> tuple[str, str]:
        """The server's name and version."""

    def close(self) -> None:
        """Let go of the connection."""


class TritonTransport:
    """gRPC through tritonclient. Each stream has a connection of its own, so several threads may stream at once."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._grpc = _tritonclient()
        self._client = self._grpc.InferenceServerClient(url)

    def __enter__(self) -> "TritonTransport":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def ready(self) -> bool:
        try:
            return bool(self._client.is_server_ready(client_timeout=2.0))
        except self._grpc.InferenceServerException:
            return False

    def identity(self) -> tuple[str, str]:
        try:
            metadata = self._client.get_server_metadata(client_timeout=5.0)
        except self._grpc.InferenceServerException as error:
            raise self._translated(error, "the server", 5.0) from error
        return metadata.name, metadata.version

    def infer(self, model: str, inputs: Sequence[Tensor], outputs: Sequence[str], timeout_s: float) -> Answer:
        wanted = [self._grpc.InferRequestedOutput(name) for name in outputs] or None
        try:
            result = self._client.infer(model, self._inputs(inputs), outputs=wanted, client_timeout=timeout_s)
        except self._grpc.InferenceServerException as error:
            raise self._translated(error, model, timeout_s) from error
        return self._outputs(result)

    def stream(self, model: str, inputs: Sequence[Tensor], timeout_s: float, request_id: str = "") -> Generator[Answer, None, None]:
        arrived: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        client = self._grpc.InferenceServerClient(self.url)
        deadline, finished = time.monotonic() + timeout_s, False
        with closing(client):
            client.start_stream(lambda result, error: arrived.put((result, error)), stream_timeout=timeout_s)
            try:
                # refused when the stream has already failed; the callback has the reason
                with suppress(self._grpc.InferenceServerException):
                    client.async_stream_infer(model, self._inputs(inputs), request_id=request_id, enable_empty_final_response=True)
                while not finished:
                    result = self._next(arrived, deadline, model, timeout_s)
                    parameters = result.get_response().parameters
                    finished = "triton_final_response" in parameters and parameters["triton_final_response"].bool_param
                    answer = self._outputs(result)
                    if answer:
                        yield answer
            finally:
                client.stop_stream(cancel_requests=not finished)

    def _next(self, arrived: "queue.SimpleQueue[tuple[Any, Any]]", deadline: float, model: str, timeout_s: float) -> Any:
        try:
            result, error = arrived.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise _deadline(model, timeout_s) from None
        if error is not None:
            raise self._translated(error, model, timeout_s) from error
        return result

    def _inputs(self, tensors: Sequence[Tensor]) -> list[Any]:
        made = []
        for tensor in tensors:
            one = self._grpc.InferInput(tensor.name, list(tensor.values.shape), tensor.datatype)
            one.set_data_from_numpy(tensor.values)
            made.append(one)
        return made

    @staticmethod
    def _outputs(result: Any) -> Answer:
        return {output.name: result.as_numpy(output.name) for output in result.get_response().outputs}

    def _translated(self, error: Any, model: str, timeout_s: float) -> TandemError:
        """tritonclient's one exception, told apart by gRPC's status word."""
        status, text = str(error.status() or ""), str(error.message() or error)
        if "DEADLINE" in status:
            return _deadline(model, timeout_s)
        if "UNAVAILABLE" in status:
            return MissingError(
                "SERVER-UNREACHABLE",
                f"no Triton server answers at {self.url}: {text}",
                found=self.url,
                needed="a running server",
                fix="start one with `tandem serve`, or check the address and the gRPC port",
            )
        return StageError("SERVER-REQUEST", f"{model}: {text}", found=status)


def _deadline(model: str, timeout_s: float) -> StageError:
    return StageError("DEADLINE", f"{model}: no complete answer within {timeout_s:g} s", found=f"{timeout_s:g} s", fix="allow more time")


def _tritonclient() -> Any:
    try:
        import tritonclient.grpc as grpc_client
    except ImportError as error:
        raise MissingError(
            "PACKAGE-TRITONCLIENT", "the gRPC client is not installed", needed="tritonclient[grpc]", fix='pip install "trt-tandem[serve]"'
        ) from error
    return grpc_client


Handler = Callable[[str, Mapping[str, "np.ndarray[Any, Any]"]], "Answer | Sequence[Answer]"]


@dataclass
class FakeTransport:
    """A transport whose answers a function gives: `handler(model, inputs)` returns one answer, or several for a stream.

    For tests of what uses a `Client`: no server, no network. Every request is kept in `requests`; streams that their reader left
    early are counted in `cancelled`.
    """

    handler: Handler
    name: str = "fake"
    version: str = "0"
    requests: list[tuple[str, dict[str, "np.ndarray[Any, Any]"]]] = field(default_factory=list)
    cancelled: int = 0
    closed: bool = False

    def infer(self, model: str, inputs: Sequence[Tensor], outputs: Sequence[str], timeout_s: float) -> Answer:
        answers = self._ask(model, inputs)
        return {name: values for name, values in answers[-1].items() if not outputs or name in outputs}

    def stream(self, model: str, inputs: Sequence[Tensor], timeout_s: float, request_id: str = "") -> Generator[Answer, None, None]:
        answers = self._ask(model, inputs)
        finished = False
        try:
            yield from answers
            finished = True
        finally:
            self.cancelled += not finished

    def ready(self) -> bool:
        return True

    def identity(self) -> tuple[str, str]:
        return self.name, self.version

    def close(self) -> None:
        self.closed = True

    def _ask(self, model: str, inputs: Sequence[Tensor]) -> Sequence[Answer]:
        sent = {tensor.name: tensor.values for tensor in inputs}
        self.requests.append((model, sent))
        answer = self.handler(model, sent)
        return [answer] if isinstance(answer, Mapping) else answer
