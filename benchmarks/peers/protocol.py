"""What every peer shares: questions in on standard input, answers out on standard output, one JSON object a line.

{"op": "load", "target": path, "draft": path or null, "models": path, "threads": n, "end_ids": [...], "max_tokens": n, "batch": n}
    -> {"facts": {...}}            versions and settings that a reader should know
{"op": "generate", "prompts": [[ids]], "new_tokens": n, "mode": word}
    -> {"outputs": [[ids]], "seconds": s}     greedy, end ids respected, time of the answers alone
"""

import json
import os
import sys
import time
from typing import Any, Protocol, TextIO

Ids = list[int]


class Peer(Protocol):
    """An engine that answers token ids with token ids."""

    def load(self, settings: dict[str, Any]) -> dict[str, str]: ...

    def generate(self, prompts: list[Ids], new_tokens: int, mode: str) -> list[Ids]: ...


def serve(peer: Peer) -> None:
    """Answer questions until the input ends."""
    out = _take_stdout()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = _answer(peer, question)
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def _answer(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
    operation = question.pop("op")
    if operation == "load":
        return {"facts": peer.load(question)}
    began = time.perf_counter()
    outputs = peer.generate(**question)
    return {"outputs": outputs, "seconds": time.perf_counter() - began}


def _take_stdout() -> TextIO:
    """Standard output for answers alone: whatever a library prints goes to standard error."""
    own = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(own, "w", encoding="utf-8")
