"""Batches of requests through one engine: parse, generate together, answer each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from plugins.engines.openvino.triton_backend.answer import outputs
from plugins.engines.openvino.triton_backend.parse import BadTensorError, ParsedRequest, Read, is_stop, parse
from plugins.engines.openvino.triton_backend.runtimes import Runtime, runtime_of

TRUE_WORDS = frozenset({"true", "1", "yes", "t"})


@dataclass(frozen=True)
class IncomingRequest:
    """One request as the backend needs it: a reader of its tensors and the outputs it wants."""

    read: Read
    wanted: frozenset[str]


@dataclass(frozen=True)
class Refusal:
    """Why one request got no answer."""

    message: str


@dataclass(frozen=True)
class Counts:
    """What a batch did, for the metrics."""

    generated_tokens: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    reused_tokens: int = 0
    kv_blocks: int = 0


Answer = dict[str, npt.NDArray[Any]] | Refusal


class Backend:
    """One loaded engine, and the runtime it belongs to."""

    def __init__(
        self, engine: Any, runtime: Runtime, *, exclude_input: bool = False, on_batch: Callable[[Counts], None] = lambda counts: None
    ) -> None:
        self._engine, self._runtime, self._exclude_input, self._on_batch = engine, runtime, exclude_input, on_batch
        self._tokens_per_block = int(getattr(engine.record, "tokens_per_block", 32))

    @staticmethod
    def load(parameters: Mapping[str, str], on_batch: Callable[[Counts], None]) -> "Backend":
        """From the parameters of config.pbtxt. The engine folder says which runtime it is for."""
        engine_dir = Path(parameters["gpt_model_path"])
        runtime = runtime_of(engine_dir)
        cached = parameters.get("max_tokens_in_paged_kv_cache", "")
        reuse = parameters.get("enable_kv_cache_reuse", "true").lower() in TRUE_WORDS
        engine = runtime.Engine.load(engine_dir, max_cached_tokens=int(cached) if cached.isdigit() else None, reuse=reuse)
        return Backend(
            engine, runtime, exclude_input=parameters.get("exclude_input_in_output", "").lower() in TRUE_WORDS, on_batch=on_batch
        )

    def answer(self, incoming: Sequence[IncomingRequest]) -> list[Answer]:
        """One answer for each request, in order. A bad request fails alone."""
        answers: list[Answer] = [{} for _ in incoming]
        parsed: dict[int, ParsedRequest] = {}
        for i, one in enumerate(incoming):
            try:
                if not is_stop(one.read):  # nothing is running now: a stop request gets its empty answer
                    parsed[i] = parse(one.read, exclude_input=self._exclude_input)
            except BadTensorError as error:
                answers[i] = Refusal(str(error))
        results = self._engine.generate([self._engine_request(request) for request in parsed.values()]) if parsed else []
        done = []
        for (i, request), result in zip(parsed.items(), results, strict=True):
            if isinstance(result, self._runtime.RequestError):
                answers[i] = Refusal(str(result))
            else:
                answers[i] = outputs(request, result, incoming[i].wanted, self._tokens_per_block)
                done.append(result)
        self._on_batch(_counts(done))
        return answers

    def _engine_request(self, request: ParsedRequest) -> Any:
        return self._runtime.Request(
            input_ids=request.input_ids,
            max_new_tokens=request.max_new_tokens,
            draft_ids=request.draft_ids,
            end_ids=request.end_ids,
            stop_words=request.stop_words,
            bad_words=request.bad_words,
            min_tokens=request.min_tokens,
            sampling=self._runtime.Sampling(**vars(request.sampling)),
            want_generation_logits=request.want_generation_logits,
            want_context_logits=request.want_context_logits,
            want_log_probs=request.want_log_probs,
            draft_logits=request.draft_logits,
        )


def _counts(results: Sequence[Any]) -> Counts:
    return Counts(
        generated_tokens=sum(len(result.output_ids) for result in results),
        drafted_tokens=sum(result.drafted_tokens for result in results),
        accepted_tokens=sum(result.accepted_tokens for result in results),
        reused_tokens=sum(result.reused_tokens for result in results),
        kv_blocks=sum(result.total_blocks for result in results),
    )
