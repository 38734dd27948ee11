"""An engine without a model: the next token is a pure function of the last token and its position. Same API as the runtime.

For contract, concurrency and fault tests, where the model does not matter. `wrong_every` makes a draft that is refused at every so
many positions; `step_s` makes a pass take time. Sampling is taken and ignored: it is always greedy.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plugins.engines.openvino.runtime.request import Finish, Request, RequestError, Result, Sampling

__all__ = ["Engine", "NullRecord", "Request", "RequestError", "Result", "Sampling"]


@dataclass(frozen=True)
class NullRecord:
    """The part of an engine record that the backend reads."""

    vocab_size: int
    max_sequence_tokens: int = 1 << 20
    tokens_per_block: int = 32


@dataclass
class Engine:
    """The compute-free engine."""

    record: NullRecord
    wrong_every: int = 0
    step_s: float = 0.0
    passes: int = 0

    @staticmethod
    def load(engine_dir: Path, *, max_cached_tokens: int | None = None, threads: int | None = None, reuse: bool = True) -> "Engine":
        """`config.json` holds {"tandem": {"kind": "null", "vocab_size": N, "wrong_every": 0, "step_s": 0}}."""
        own = json.loads((engine_dir / "config.json").read_text())["tandem"]
        return Engine(NullRecord(int(own["vocab_size"])), int(own.get("wrong_every", 0)), float(own.get("step_s", 0)))

    def generate(self, requests: Sequence[Request]) -> list[Result | RequestError]:
        """All requests together; a pass of all of them takes `step_s`."""
        results = [self._one(request) for request in requests]
        longest = max((_passes(request, result) for request, result in zip(requests, results, strict=True)), default=0)
        self.passes += longest
        if self.step_s:
            time.sleep(self.step_s * longest)
        return results

    def _one(self, request: Request) -> Result | RequestError:
        try:
            self._check(request)
        except RequestError as error:
            return error
        output, accepted, finish = self._tokens(request)
        length = len(request.input_ids) + len(output)
        blocks = -(-length // self.record.tokens_per_block)
        logits = _one_hot(output, self.record.vocab_size) if request.want_generation_logits else None
        context = np.zeros((len(request.input_ids), self.record.vocab_size), dtype=np.float32) if request.want_context_logits else None
        return Result(
            tuple(output),
            finish,
            drafted_tokens=len(request.draft_ids),
            accepted_tokens=accepted,
            new_blocks=blocks,
            total_blocks=blocks,
            generation_logits=logits,
            context_logits=context,
        )

    def _check(self, request: Request) -> None:
        vocab = self.record.vocab_size
        for name in ("input_ids", "draft_ids"):
            for token in getattr(request, name):
                if not 0 <= token < vocab:
                    raise RequestError("ENGINE-TOKEN", name, str(token), f"0 to {vocab - 1}")
        if not request.input_ids:
            raise RequestError("ENGINE-PROMPT", "input_ids", "empty", "one token at least")
        if request.max_new_tokens < 1:
            raise RequestError("ENGINE-LENGTH", "max_new_tokens", str(request.max_new_tokens), "1 at least")

    def _tokens(self, request: Request) -> tuple[list[int], int, Finish]:
        output: list[int] = []
        last, position = request.input_ids[-1], len(request.input_ids)
        limit = min(request.max_new_tokens, len(request.draft_ids) + 1) if request.draft_ids else request.max_new_tokens
        accepted = 0
        while len(output) < limit:
            last = self.next_token(last, position, () if len(output) >= request.min_tokens else request.end_ids)
            position += 1
            output.append(last)
            if last in request.end_ids:
                return output, accepted, "end"
            if any(tuple(output[-len(word) :]) == word for word in request.stop_words):
                return output, accepted, "stop"
            if request.draft_ids:
                if len(output) > len(request.draft_ids) or request.draft_ids[len(output) - 1] != last:
                    return output, accepted, "verified"
                accepted += 1
        return output, accepted, "verified" if request.draft_ids else "length"

    def next_token(self, last: int, position: int, banned: tuple[int, ...] = ()) -> int:
        """The token after `last` at `position`: repeats itself with a short period, so that prompt lookup has something to find."""
        vocab = self.record.vocab_size
        token = (last * 7 + position % 16) % (vocab - 10) + 5
        if self.wrong_every and position % self.wrong_every == 0:
            token = (token + 1) % vocab
        while token in banned:
            token = (token + 1) % vocab
        return token


def _passes(request: Request, result: Result | RequestError) -> int:
    if isinstance(result, RequestError):
        return 0
    return 1 if request.draft_ids else len(result.output_ids)


def _one_hot(tokens: Sequence[int], vocab: int) -> npt.NDArray[Any]:
    logits = np.zeros((len(tokens), vocab), dtype=np.float32)
    logits[np.arange(len(tokens)), list(tokens)] = 1.0
    return logits
