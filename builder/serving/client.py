"""A client of the packaged repository: prompts to the orchestrator, logits straight from the target."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any

import numpy as np

from builder.errors import StageError
from builder.serving.generation import GenerateRequest, Generation
from builder.serving.transport import Answer, Tensor, Transport

ORCHESTRATOR = "tensorrt_llm_bls"
TARGET = "tensorrt_llm"
TOKENIZER = "preprocessing"
LOGITS_TIMEOUT_S = 120.0

OnText = Callable[[str], None]

# input of the orchestrator -> field of GenerateRequest, numpy type, Triton's datatype
OPTIONAL_INPUTS: Mapping[str, tuple[str, type[np.generic], str]] = {
    "apply_chat_template": ("chat", np.bool_, "BOOL"),
    "num_draft_tokens": ("num_draft_tokens", np.int32, "INT32"),
    "lookup": ("lookup", np.bool_, "BOOL"),
    "min_tokens": ("min_tokens", np.int32, "INT32"),
    "temperature": ("temperature", np.float32, "FP32"),
    "top_k": ("top_k", np.int32, "INT32"),
    "top_p": ("top_p", np.float32, "FP32"),
    "repetition_penalty": ("repetition_penalty", np.float32, "FP32"),
    "presence_penalty": ("presence_penalty", np.float32, "FP32"),
    "frequency_penalty": ("frequency_penalty", np.float32, "FP32"),
    "seed": ("seed", np.uint64, "UINT64"),
}


class Client:
    """Speaks to one server through a transport; a context manager that closes it."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.transport.close()

    def generate(self, request: GenerateRequest, on_text: OnText | None = None) -> Generation:
        """Answer one prompt; `on_text` gets each piece as it comes (one piece when the request does not stream).

        An interruption or a missed deadline cancels the request on the server. Raises MissingError SERVER-UNREACHABLE and
        StageError SERVER-REQUEST, DEADLINE, SERVER-ANSWER.
        """
        collected = _Collected()
        with closing(self.transport.stream(ORCHESTRATOR, _inputs(request), request.deadline_s, request.request_id)) as answers:
            for answer in answers:
                piece = collected.add(answer)
                if piece and on_text is not None:
                    on_text(piece)
        return collected.finish()

    def prompt_ids(self, text: str, chat: bool | None = None) -> tuple[int, ...]:
        """Token ids of a prompt, as the served tokenizer makes them."""
        inputs = [_text("QUERY", [text]), _scalar("REQUEST_OUTPUT_LEN", 1, np.int32, "INT32")]
        if chat is not None:
            inputs.append(_scalar("APPLY_CHAT_TEMPLATE", chat, np.bool_, "BOOL"))
        answer = self.transport.infer(TOKENIZER, inputs, ["INPUT_ID"], LOGITS_TIMEOUT_S)
        return tuple(int(i) for i in _need(answer, "INPUT_ID", TOKENIZER).reshape(-1))

    def context_logits(self, ids: Sequence[int]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """The target's logits [len(ids), vocab] float32 for each position of `ids`."""
        logits = self._target_logits(ids, "return_context_logits", "context_logits")
        return logits.reshape(len(ids), -1)

    def next_logits(self, ids: Sequence[int]) -> "np.ndarray[Any, np.dtype[np.float32]]":
        """The target's logits [vocab] float32 for the token after `ids`."""
        return self._target_logits(ids, "return_generation_logits", "generation_logits").reshape(-1)

    def _target_logits(self, ids: Sequence[int], flag: str, output: str) -> "np.ndarray[Any, np.dtype[np.float32]]":
        inputs = [
            Tensor("input_ids", np.array([list(ids)], np.int32), "INT32"),
            _scalar("input_lengths", len(ids), np.int32, "INT32"),
            _scalar("request_output_len", 1, np.int32, "INT32"),
            _scalar("exclude_input_in_output", True, np.bool_, "BOOL"),
            _scalar(flag, True, np.bool_, "BOOL"),
        ]
        # the C++ backend refuses requests that do not ask for the first two
        answer = self.transport.infer(TARGET, inputs, ["output_ids", "sequence_length", output], LOGITS_TIMEOUT_S)
        return np.asarray(_need(answer, output, TARGET), np.float32)


class _Collected:
    """The pieces of one answer; the counters of the last response that has them are those of the whole request."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._first_s: float | None = None
        self._text: list[str] = []
        self._ids: list[int] = []
        self._counters: dict[str, int] = {}

    def add(self, answer: Answer) -> str:
        if "output_ids" not in answer:
            raise StageError("SERVER-ANSWER", f"{ORCHESTRATOR} answered without output_ids: it is not one that this version packaged")
        new = _new_ids(answer)
        if new and self._first_s is None:
            self._first_s = time.perf_counter() - self._started
        self._ids += new
        piece = _joined_text(answer)
        self._text.append(piece)
        self._counters |= {name: int(v.reshape(-1)[0]) for name, v in answer.items() if name in COUNTERS and v.size}
        return piece

    def finish(self) -> Generation:
        seconds = time.perf_counter() - self._started
        counts = {name: self._counters.get(name, 0) for name in COUNTERS}
        return Generation(
            text="".join(self._text),
            output_ids=tuple(self._ids),
            drafted=counts["total_draft_tokens"],
            accepted=counts["total_accepted_draft_tokens"],
            lookup_drafted=counts["total_lookup_tokens"],
            lookup_accepted=counts["total_accepted_lookup_tokens"],
            rounds=counts["num_rounds"],
            seconds=seconds,
            seconds_to_first_token=seconds if self._first_s is None else self._first_s,
            draft_s=counts["draft_time_us"] / 1e6,
            target_s=counts["target_time_us"] / 1e6,
        )


def _new_ids(answer: Answer) -> list[int]:
    """New tokens of one response. Where the server says how long the sequence is, what follows is padding; where it says how long the
    prompt was and the sequence holds that, too, the prompt is no output (some engines repeat it whatever is asked)."""
    ids = [int(i) for i in answer["output_ids"].reshape(-1)]
    if "sequence_length" not in answer:
        return ids
    length, prompt = _count(answer, "sequence_length"), _count(answer, "num_input_tokens")
    made = _count(answer, "num_output_tokens")
    repeated = prompt if prompt and length == prompt + made else 0
    return ids[repeated:length]


def _count(answer: Answer, name: str) -> int:
    values = answer.get(name)
    return 0 if values is None or not values.size else int(values.reshape(-1)[0])


COUNTERS = (
    "total_draft_tokens",
    "total_accepted_draft_tokens",
    "total_lookup_tokens",
    "total_accepted_lookup_tokens",
    "num_rounds",
    "draft_time_us",
    "target_time_us",
)


def _inputs(request: GenerateRequest) -> list[Tensor]:
    """Tensors of the orchestrator, shape [1, n] each."""
    inputs = [
        _text("text_input", [request.text]),
        _scalar("max_tokens", request.max_tokens, np.int32, "INT32"),
        _scalar("stream", request.stream, np.bool_, "BOOL"),
        _scalar("exclude_input_in_output", True, np.bool_, "BOOL"),
        _scalar("return_perf_metrics", True, np.bool_, "BOOL"),
    ]
    for name, (field, kind, datatype) in OPTIONAL_INPUTS.items():
        value = getattr(request, field)
        if value is not None:
            inputs.append(_scalar(name, value, kind, datatype))
    inputs += [_text(name, words) for name, words in (("stop_words", request.stop_words), ("bad_words", request.bad_words)) if words]
    return inputs


def _text(name: str, words: Sequence[str]) -> Tensor:
    return Tensor(name, np.array([[w.encode() for w in words]], object), "BYTES")


def _scalar(name: str, value: float, kind: type[np.generic], datatype: str) -> Tensor:
    return Tensor(name, np.array([[value]], kind), datatype)


def _need(answer: Answer, name: str, model: str) -> "np.ndarray[Any, Any]":
    if name not in answer:
        raise StageError("SERVER-ANSWER", f"{model} answered without {name}")
    return answer[name]


def _joined_text(answer: Answer) -> str:
    if "text_output" not in answer:
        return ""
    return "".join(t.decode(errors="replace") if isinstance(t, bytes) else str(t) for t in answer["text_output"].reshape(-1))
