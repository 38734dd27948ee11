"""The engine models and preprocessing as seen through Triton's BLS calls. `pb_utils` is passed in, so tests bring their own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from triton_repo.common.stops import decode_word_lists, encode_word_lists
from triton_repo.tensorrt_llm_bls.loop import ModelFailedError, TokenArray
from triton_repo.tensorrt_llm_bls.request import GenerateRequest

IntArray = npt.NDArray[np.int32]

KV_FIGURES = ("kv_cache_alloc_new_blocks", "kv_cache_reused_blocks", "kv_cache_alloc_total_blocks")
PREPROCESSED = ("INPUT_ID", "REQUEST_INPUT_LEN", "OUT_END_ID", "STOP_WORDS_IDS", "BAD_WORDS_IDS")
_INTEGER_INPUTS = frozenset({"end_id", "pad_id", "runtime_top_k"})


class TritonCalls:
    """Makes tensors and plain (not decoupled) calls. One per request: tensors that stay the same are made once."""

    def __init__(self, pb_utils: Any, request_id: str) -> None:
        self.pb = pb_utils
        self._request_id = request_id

    def call(self, model: str, inputs: list[Any], outputs: list[str]) -> dict[str, Any]:
        """Arrays by output name. Raises ModelFailedError."""
        pb = self.pb
        response = pb.InferenceRequest(model_name=model, requested_output_names=outputs, inputs=inputs, request_id=self._request_id).exec()
        if response.has_error():
            error = response.error()
            raise ModelFailedError(f"{model}: {error.message()}", of_request=error.code() == pb.TritonError.INVALID_ARG)
        return {tensor.name(): tensor.as_numpy() for tensor in response.output_tensors()}

    def scalar(self, name: str, value: float, dtype: Any) -> Any:
        return self.pb.Tensor(name, np.array([[value]], dtype=dtype))


class TritonLanguageModel:
    """An engine model behind the tensorrtllm tensor contract. Implements LanguageModel.

    `min_tokens` of a call reaches no further than the call, so where the minimum lies beyond it the end ids are banned words
    (`words.banned`).
    """

    def __init__(self, calls: TritonCalls, model: str, constants: Iterable[Any], words: "Words", *, kv_figures: bool = False) -> None:
        self._calls, self._model, self._words = calls, model, words
        self._constants = [*constants, calls.scalar("exclude_input_in_output", True, np.bool_)]
        self._outputs = ["output_ids", "sequence_length", *(KV_FIGURES if kv_figures else ())]
        self._lengths: dict[int, Any] = {}
        self.kv_cache: dict[str, int] = {}

    def generate(
        self, tokens: TokenArray, new_tokens: int, *, draft: TokenArray | None = None, min_tokens: int = 0, seed: int | None = None
    ) -> TokenArray:
        calls, tensor = self._calls, self._calls.pb.Tensor
        inputs = [
            tensor("input_ids", tokens[None]),
            tensor("input_lengths", np.array([[len(tokens)]], dtype=np.int32)),
            self._length(new_tokens),
            *self._constants,
        ]
        if draft is not None:
            inputs.append(tensor("draft_input_ids", draft[None]))
        beyond = min_tokens > new_tokens
        if min_tokens and not beyond:
            inputs.append(calls.scalar("min_tokens", min_tokens, np.int32))
        bad_words = self._words.banned if beyond else self._words.bad
        if bad_words is not None:
            inputs.append(tensor("bad_words_list", bad_words))
        if seed is not None:
            inputs.append(calls.scalar("seed", seed, np.uint64))
        answer = calls.call(self._model, inputs, self._outputs)
        for name in self._outputs[2:]:
            if name in answer:
                self.kv_cache[name] = int(answer[name].reshape(-1)[0])
        ids: TokenArray = answer["output_ids"].reshape(-1)
        return ids[: int(answer["sequence_length"].reshape(-1)[0])]

    def _length(self, new_tokens: int) -> Any:
        if new_tokens not in self._lengths:
            self._lengths[new_tokens] = self._calls.scalar("request_output_len", new_tokens, np.int32)
        return self._lengths[new_tokens]


def preprocess(calls: TritonCalls, request: GenerateRequest) -> dict[str, Any]:
    """Token ids and word lists of the request, from the model `preprocessing`. Raises ModelFailedError."""
    tensor = calls.pb.Tensor
    inputs = [tensor("QUERY", request.text), calls.scalar("REQUEST_OUTPUT_LEN", request.max_tokens, np.int32)]
    if request.stop_words:
        words = np.array([[word.encode("utf-8") for word in request.stop_words]], dtype=np.object_)
        inputs.append(tensor("STOP_WORDS_DICT", words))
    if request.bad_words is not None:
        inputs.append(tensor("BAD_WORDS_DICT", request.bad_words.reshape(1, -1)))
    for name, value in (("END_ID", request.end_id), ("PAD_ID", request.pad_id)):
        if value is not None:
            inputs.append(calls.scalar(name, value, np.int32))
    if request.apply_chat_template is not None:
        inputs.append(calls.scalar("APPLY_CHAT_TEMPLATE", request.apply_chat_template, np.bool_))
    return calls.call("preprocessing", inputs, list(PREPROCESSED))


@dataclass(frozen=True)
class Words:
    """End id and word lists as the engines take them: an id, and [1, 2, n] arrays or None. `banned`: bad words and end ids."""

    end_id: int
    stop: IntArray | None
    bad: IntArray | None
    banned: IntArray | None

    @staticmethod
    def of(tokens: Mapping[str, Any], end_ids: frozenset[int]) -> "Words":
        """From the outputs of preprocessing. `end_id` holds one id: further end ids go to the engines as stop words of one token."""
        end_id = int(tokens["OUT_END_ID"].reshape(-1)[0])
        stop = [*decode_word_lists(tokens["STOP_WORDS_IDS"]), *((other,) for other in sorted(end_ids - {end_id}))]
        bad = decode_word_lists(tokens["BAD_WORDS_IDS"])
        return Words(
            end_id=end_id,
            stop=_word_array(stop),
            bad=_word_array(bad),
            banned=_word_array([*bad, *((token,) for token in sorted(end_ids))]),
        )


def shared_constants(calls: TritonCalls, request: GenerateRequest, words: Words) -> list[Any]:
    """Tensors that both models get on every call: end id, stop words, penalties, and a pad id where the client sent one."""
    sampling = request.sampling
    values = {
        "end_id": words.end_id,
        "pad_id": request.pad_id,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
    }
    return _scalars(calls, values) + ([] if words.stop is None else [calls.pb.Tensor("stop_words_list", words.stop)])


def target_constants(calls: TritonCalls, request: GenerateRequest) -> list[Any]:
    """How the target samples. Greedy is said in so many words, because the default differs between engines."""
    sampling = request.sampling
    if sampling.greedy:
        return greedy_constants(calls)
    temperature = 1.0 if sampling.temperature is None else sampling.temperature
    top_p = 1.0 if sampling.top_p is None else sampling.top_p
    return _scalars(calls, {"temperature": temperature, "runtime_top_k": sampling.top_k or 0, "runtime_top_p": top_p})


def greedy_constants(calls: TritonCalls) -> list[Any]:
    """The draft model always proposes its most likely token.

    The target takes a proposed token with the probability it gives to that token itself, so the distribution of the answer stays the
    target's and the most likely proposal is the one most often taken.
    """
    return _scalars(calls, {"runtime_top_k": 1})


def _word_array(words: Sequence[tuple[int, ...]]) -> IntArray | None:
    return encode_word_lists(words)[None] if words else None


def _scalars(calls: TritonCalls, values: Mapping[str, Any]) -> list[Any]:
    def scalar(name: str, value: Any) -> Any:
        return calls.scalar(name, value, np.int32 if name in _INTEGER_INPUTS else np.float32)

    return [scalar(name, value) for name, value in values.items() if value is not None]
