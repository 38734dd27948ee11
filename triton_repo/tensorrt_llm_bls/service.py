"""Serves requests of tensorrt_llm_bls on a bounded pool of threads, each with one response sender."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from triton_repo.tensorrt_llm_bls import answer
from triton_repo.tensorrt_llm_bls.health import DraftHealth, SharedEstimates
from triton_repo.tensorrt_llm_bls.loop import DraftTargetLoop, LoopSettings, ModelFailedError
from triton_repo.tensorrt_llm_bls.request import BadRequestError, Defaults, parse
from triton_repo.tensorrt_llm_bls.rows import Row, SharedSender, row_count, row_of
from triton_repo.tensorrt_llm_bls.text import TextStream
from triton_repo.tensorrt_llm_bls.triton_models import (
    TritonCalls,
    TritonLanguageModel,
    Words,
    greedy_constants,
    preprocess,
    shared_constants,
    target_constants,
)

WAITING_PER_THREAD = 32  # requests that may wait for a thread before new ones are turned away
CANCEL_CHECK_S = 0.01


class CancelledRequestError(Exception):
    """The client went away."""


class Service:
    """Everything the requests of one model instance share."""

    def __init__(
        self, pb_utils: Any, defaults: Defaults, decode: Callable[[list[int]], str], *, waiting_per_thread: int = WAITING_PER_THREAD
    ) -> None:
        self.pb, self.defaults, self.decode = pb_utils, defaults, decode
        self.estimates = SharedEstimates()
        self.health = DraftHealth(lambda message: pb_utils.Logger.log_warn(f"tensorrt_llm_bls: {message}"))
        self._pool = ThreadPoolExecutor(defaults.max_concurrent_requests, thread_name_prefix="bls")
        self._room = threading.BoundedSemaphore(defaults.max_concurrent_requests * (1 + waiting_per_thread))

    def submit(self, request: Any) -> None:
        """Take a request; every prompt in it is answered through its one response sender."""
        arrival_ns, raw = time.time_ns(), request.get_response_sender()
        rows = row_count(request, self.pb.get_input_tensor_by_name)
        sender = SharedSender(raw, rows)
        for row in range(rows):
            if not self._room.acquire(blocking=False):
                self._fail(sender, "too many requests are waiting", self.pb.TritonError.UNAVAILABLE)
                return
            self._pool.submit(self._serve, request, sender, Row(row, rows, arrival_ns))

    def close(self) -> None:
        """Finish what runs and what waits: a client whose request was dropped would wait for ever."""
        self._pool.shutdown(wait=True)

    def _serve(self, request: Any, sender: SharedSender, row: Row) -> None:
        codes = self.pb.TritonError
        try:
            Conversation(self, request, sender, row).run()
        except BadRequestError as error:
            self._fail(sender, str(error), codes.INVALID_ARG)
        except CancelledRequestError:
            self._fail(sender, "request was cancelled", codes.CANCELLED)
        except ModelFailedError as error:
            self._fail(sender, str(error), codes.INVALID_ARG if error.of_request else codes.UNAVAILABLE)
        except Exception as error:  # noqa: BLE001 - whatever happens, the client must get an end
            self.pb.Logger.log_error(f"tensorrt_llm_bls: {type(error).__name__}: {error}")
            self._fail(sender, f"{type(error).__name__}: {error}", codes.INTERNAL)
        finally:
            self._room.release()

    def _fail(self, sender: SharedSender, message: str, code: Any) -> None:
        pb = self.pb
        sender.fail(pb.InferenceResponse(error=pb.TritonError(message, code)), pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


class Conversation:
    """One prompt from its inputs to its last response."""

    def __init__(self, service: Service, request: Any, sender: SharedSender, row: Row) -> None:
        self._service, self._sender, self._pb, self._row = service, sender, service.pb, row
        self._wanted = frozenset(request.requested_output_names())
        self._times = answer.Times(arrival_ns=row.arrival_ns, first_scheduled_ns=time.time_ns())
        self._calls = TritonCalls(service.pb, row.request_id(request.request_id()))
        self._next_check_s = 0.0
        self._request = parse(self._reader(request), service.defaults)

    def run(self) -> None:
        """Generate and answer. Raises BadRequestError, ModelFailedError, CancelledRequestError."""
        self._check_cancelled()
        asked = self._request
        tokens = preprocess(self._calls, asked)
        prompt = tokens["INPUT_ID"].reshape(-1)[: int(tokens["REQUEST_INPUT_LEN"].reshape(-1)[0])]
        self._check_length(len(prompt))
        end_ids = self._end_ids(tokens)
        loop, target = self._loop(prompt, tokens, end_ids)
        stream = TextStream(self._service.decode, asked.stop_words, end_ids=end_ids, min_tokens=asked.min_tokens)
        text, ids = self._generate(loop, stream)
        self._service.estimates.finish(loop.state)
        if loop.draft_answers:
            self._service.health.answered()
        self._times.last_token_ns = time.time_ns()
        self._finish(text + stream.flush(), ids, answer.Figures(loop.totals, self._times, len(prompt), self._made, target.kv_cache))

    def _generate(self, loop: DraftTargetLoop, stream: TextStream) -> tuple[str, list[int]]:
        """Run the loop; return the text and token ids that are not sent yet."""
        pending_text, pending_ids, self._made = self._echo(), list[int](), 0
        for new in loop:
            self._times.first_token_ns = self._times.first_token_ns or time.time_ns()
            ids = new.tolist()
            text, count = stream.feed(ids)
            pending_text += text
            pending_ids += ids[:count]
            self._made += count
            if stream.stopped:
                break
            self._check_cancelled()
            if self._request.stream and pending_text:
                self._send(self._piece(pending_text, pending_ids), final=False)
                pending_text, pending_ids = "", []
        return pending_text, pending_ids

    def _loop(self, prompt: Any, tokens: Mapping[str, Any], end_ids: frozenset[int]) -> tuple[DraftTargetLoop, TritonLanguageModel]:
        asked, service, calls = self._request, self._service, self._calls
        words = Words.of(tokens, end_ids)
        shared = shared_constants(calls, asked, words)
        sampled = [*shared, *target_constants(calls, asked)]
        target = TritonLanguageModel(calls, service.defaults.target_model, sampled, words, kv_figures=asked.perf_metrics)
        draft = None
        if service.defaults.draft_model and asked.num_draft_tokens and service.health.usable:
            draft = TritonLanguageModel(calls, service.defaults.draft_model, [*shared, *greedy_constants(calls)], words)
        settings = LoopSettings(
            max_tokens=asked.max_tokens,
            min_tokens=asked.min_tokens,
            end_ids=end_ids,
            num_draft_tokens=asked.num_draft_tokens,
            lookup=asked.lookup,
            adaptive=service.defaults.adaptive,
            stream=asked.stream,
            seed=self._seed(),
            shared_vocab_size=service.defaults.shared_vocab_size,
        )
        state = service.estimates.begin()
        return DraftTargetLoop(prompt, settings, target, draft, state=state, on_draft_failure=self._draft_failed), target

    def _end_ids(self, tokens: Mapping[str, Any]) -> frozenset[int]:
        """The client's own end id alone, or the tokenizer's with the model's further ones. A negative id means none."""
        ids = {int(tokens["OUT_END_ID"].reshape(-1)[0])}
        if self._request.end_id is None:
            ids.update(self._service.defaults.end_ids)
        return frozenset(token for token in ids if token >= 0)

    def _check_length(self, prompt_tokens: int) -> None:
        longest_prompt = self._service.defaults.max_input_tokens
        if longest_prompt is not None and prompt_tokens > longest_prompt:
            raise BadRequestError(f"prompt ({prompt_tokens} tokens) is longer than the {longest_prompt} tokens this deployment takes")
        limit, asked = self._service.defaults.max_sequence_tokens, self._request.max_tokens
        if limit is not None and prompt_tokens + asked > limit:
            raise BadRequestError(
                f"prompt ({prompt_tokens} tokens) + max_tokens ({asked}) is more than the engine's {limit} tokens a sequence"
            )

    def _seed(self) -> int | None:
        sampling = self._request.sampling
        if sampling.greedy:
            return None
        return sampling.seed if sampling.seed is not None else int.from_bytes(os.urandom(8), "little")

    def _echo(self) -> str:
        if not self._request.echo:
            return ""
        text = self._request.text.reshape(-1)[0]
        return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)

    def _draft_failed(self, error: ModelFailedError) -> None:
        if error.of_request:
            self._pb.Logger.log_info(f"tensorrt_llm_bls: target alone for one request: {error}")
        else:
            self._service.health.failed(str(error))

    def _check_cancelled(self) -> None:
        now = time.monotonic()
        if now >= self._next_check_s:
            self._next_check_s = now + CANCEL_CHECK_S
            if self._sender.is_cancelled():
                raise CancelledRequestError

    def _finish(self, text: str, ids: list[int], values: answer.Figures) -> None:
        self._send({**self._piece(text, ids), **answer.figures(values, self._wanted)}, final=True)

    def _piece(self, text: str, ids: list[int]) -> dict[str, Any]:
        return answer.piece(text, ids, self._row.index, self._wanted)

    def _send(self, arrays: Mapping[str, Any], *, final: bool) -> None:
        pb = self._pb
        response = pb.InferenceResponse([pb.Tensor(name, array) for name, array in arrays.items()])
        self._sender.send(response, pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL if final else 0)

    def _reader(self, request: Any) -> Callable[[str], Any]:
        get = self._pb.get_input_tensor_by_name

        def read(name: str) -> Any:
            tensor = get(request, name)
            return None if tensor is None else row_of(np.asarray(tensor.as_numpy()), self._row.index, self._row.rows)

        return read
