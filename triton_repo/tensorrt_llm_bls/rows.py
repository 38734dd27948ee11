"""Several prompts in one request: each row is served as a request of its own, and all answer through one response sender."""

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Row:
    """One prompt of a request: its place, how many there are, and when the request came."""

    index: int
    rows: int
    arrival_ns: int

    def request_id(self, of_request: str) -> str:
        """What the models know this prompt by: rows are in flight together, and an id names one request of an engine."""
        return f"{of_request}-{self.index}" if of_request and self.rows > 1 else of_request


def row_count(request: Any, get_input: Any) -> int:
    """Prompts in the request: the size of the batch dimension of `text_input`, at least 1 so that a wrong request is answered too."""
    tensor = get_input(request, "text_input")
    try:
        shape = () if tensor is None else np.asarray(tensor.as_numpy()).shape
    except Exception:  # noqa: BLE001 - an input that cannot be read is refused by whoever reads it for its answer
        return 1
    return shape[0] if len(shape) == 2 and shape[1] == 1 and shape[0] > 1 else 1


def row_of(array: np.ndarray[Any, Any], row: int, rows: int) -> np.ndarray[Any, Any]:
    """One row's share of an input [rows, ...]; what is there once counts for all."""
    return array[row : row + 1] if rows > 1 and array.ndim > 0 and array.shape[0] == rows else array


class SharedSender:
    """The response sender of all rows: the flag of the last response goes with the last row to end, or with the first error.

    After an error the other rows see themselves cancelled, and what they still send is dropped.
    """

    def __init__(self, sender: Any, rows: int) -> None:
        self._sender, self._left, self._failed = sender, rows, False
        self._lock = threading.Lock()

    def is_cancelled(self) -> bool:
        return self._failed or bool(self._sender.is_cancelled())

    def send(self, response: Any, final_flag: int) -> None:
        """Pass a response on; `final_flag` is above 0 with the last one of a row."""
        with self._lock:
            if self._failed:
                return
            self._left -= 1 if final_flag else 0
            self._sender.send(response, flags=final_flag if self._left == 0 else 0)

    def fail(self, response: Any, final_flag: int) -> None:
        """Pass the first error on; it ends the request."""
        with self._lock:
            if not self._failed:
                self._failed = True
                self._sender.send(response, flags=final_flag)
