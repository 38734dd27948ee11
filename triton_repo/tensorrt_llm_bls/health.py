"""State that requests share: what the draft-length rule learned, and whether the draft model is worth asking."""

import threading
import time
from collections.abc import Callable

from triton_repo.common.draft_length import DraftLengthState, next_request

FIRST_PAUSE_S, LAST_PAUSE_S = 5.0, 300.0


class SharedEstimates:
    """The last finished request's estimates are what the next one starts from."""

    def __init__(self) -> None:
        self._state = DraftLengthState()
        self._lock = threading.Lock()

    def begin(self) -> DraftLengthState:
        with self._lock:
            return next_request(self._state)

    def finish(self, state: DraftLengthState) -> None:
        with self._lock:
            self._state = state


class DraftHealth:
    """Pauses the draft model after a failure, longer each time, because each call of a dead model costs a second.

    Logs once when it fails and once when it is back.
    """

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._clock = log, clock
        self._pause_s, self._until_s = 0.0, 0.0
        self._lock = threading.Lock()

    @property
    def usable(self) -> bool:
        return self._clock() >= self._until_s

    def failed(self, message: str) -> None:
        with self._lock:
            first = self._pause_s == 0.0
            self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LAST_PAUSE_S)
            self._until_s = self._clock() + self._pause_s
        if first:
            self._log(f"draft model failed, serving with the target alone: {message}")

    def answered(self) -> None:
        if self._pause_s == 0.0:
            return
        with self._lock:
            self._pause_s = self._until_s = 0.0
        self._log("draft model answers again")
