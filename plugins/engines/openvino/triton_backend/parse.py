"""Tensors of the tensorrtllm contract to the fields of an engine request. Knows nothing of Triton."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from triton_repo.common.seeds import request_seed
from triton_repo.common.stops import decode_word_lists

Read = Callable[[str], npt.NDArray[Any] | None]

MOST_STOP_WORDS = 1024
PENALTIES = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
NOT_OFFERED = ("embedding_bias", "decoder_input_ids")
"""Inputs of the contract that change the answer and that this backend does not have."""

NEUTRAL = {
    "beam_width": 1,
    "num_return_sequences": 1,
    "len_penalty": None,
    "early_stopping": None,
    "beam_search_diversity_rate": None,
    "runtime_top_p_min": None,
    "runtime_top_p_decay": None,
    "runtime_top_p_reset_ids": None,
    "draft_acceptance_threshold": None,
}
"""Inputs taken only at a value that changes nothing; None: ignored with beam width 1, or harmless."""


class BadTensorError(ValueError):
    """A tensor's value cannot be served. Maps to INVALID_ARG for its request alone."""


@dataclass(frozen=True)
class SamplingValues:
    """Sampling as the engine's `Sampling` takes it; top_k 1 is greedy, top_k 0 and top_p 1 take all tokens, seed None a fresh one."""

    temperature: float = 1.0
    top_k: int = 1
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None


@dataclass(frozen=True)
class ParsedRequest:
    """One request, checked as far as no engine is needed for it."""

    input_ids: tuple[int, ...]
    max_new_tokens: int
    draft_ids: tuple[int, ...]
    end_ids: tuple[int, ...]
    stop_words: tuple[tuple[int, ...], ...]
    bad_words: tuple[tuple[int, ...], ...]
    min_tokens: int
    sampling: SamplingValues
    want_generation_logits: bool
    want_context_logits: bool
    want_log_probs: bool
    exclude_input: bool
    draft_logits: npt.NDArray[np.float32] | None = None


def parse(read: Read, *, exclude_input: bool) -> ParsedRequest:
    """Read and check the tensors of one request. Raises BadTensorError."""
    _refuse(read)
    new_tokens = _at_least(read, "request_output_len", 1)
    draft = read("draft_input_ids")
    draft_ids = () if draft is None else tuple(draft.reshape(-1).tolist())
    if len(draft_ids) > new_tokens:
        raise BadTensorError(f"draft_input_ids holds {len(draft_ids)} tokens, more than request_output_len {new_tokens}")
    end_id = _scalar(read, "end_id", -1)
    return ParsedRequest(
        input_ids=_prompt(read),
        max_new_tokens=new_tokens,
        draft_ids=draft_ids,
        end_ids=(end_id,) if end_id >= 0 else (),
        stop_words=_words(read, "stop_words_list"),
        bad_words=_words(read, "bad_words_list"),
        min_tokens=_at_least(read, "min_tokens", 0, 0),
        sampling=_sampling(read),
        want_generation_logits=bool(_scalar(read, "return_generation_logits", False)),
        want_context_logits=bool(_scalar(read, "return_context_logits", False)),
        want_log_probs=bool(_scalar(read, "return_log_probs", False)),
        exclude_input=bool(_scalar(read, "exclude_input_in_output", exclude_input)),
        draft_logits=_draft_logits(read, len(draft_ids)),
    )


def is_stop(read: Read) -> bool:
    """Whether this is a request to stop another one."""
    return bool(_scalar(read, "stop", False))


def _refuse(read: Read) -> None:
    if _scalar(read, "streaming", False):
        raise BadTensorError("streaming needs a decoupled model; the orchestrator tensorrt_llm_bls streams")
    for name in NOT_OFFERED:
        tensor = read(name)
        if tensor is not None and tensor.size and np.any(tensor != 0):
            raise BadTensorError(f"{name} is not offered by this engine")
    for name, value in NEUTRAL.items():
        found = _scalar(read, name, value)
        if value is not None and found != value:
            raise BadTensorError(f"{name} must be {value}, found {found}")


def _prompt(read: Read) -> tuple[int, ...]:
    ids = read("input_ids")
    if ids is None:
        raise BadTensorError("input_ids is required")
    if ids.ndim > 1 and ids.shape[0] != 1:
        raise BadTensorError(f"a request holds one sequence, found {ids.shape[0]}")
    length = _at_least(read, "input_lengths", 1)
    if length > ids.size:
        raise BadTensorError(f"input_lengths is {length}, input_ids holds {ids.size}")
    return tuple(ids.reshape(-1)[:length].tolist())


def _draft_logits(read: Read, drafts: int) -> npt.NDArray[np.float32] | None:
    """Logits [drafts, vocab] that the drafts were drawn from."""
    logits = read("draft_logits")
    if logits is None or logits.size == 0:
        return None
    rows = logits.reshape(-1, logits.shape[-1])
    if len(rows) != drafts:
        raise BadTensorError(f"draft_logits holds {len(rows)} rows, draft_input_ids {drafts} tokens")
    return rows.astype(np.float32, copy=False)


def _sampling(read: Read) -> SamplingValues:
    temperature, top_k, top_p = (_scalar(read, name, None) for name in ("temperature", "runtime_top_k", "runtime_top_p"))
    _check_number("temperature", temperature, 0.0)
    _check_number("runtime_top_p", top_p, 0.0, 1.0)
    if top_k is not None and top_k < 0:
        raise BadTensorError(f"runtime_top_k must be at least 0, found {top_k}")
    penalties = {name: _scalar(read, name, default) for name, default in PENALTIES.items()}
    for name, value in penalties.items():
        _check_number(name, value)
    if penalties["repetition_penalty"] <= 0:
        raise BadTensorError(f"repetition_penalty must be above 0, found {penalties['repetition_penalty']:g}")
    said = temperature is not None or top_k or top_p is not None
    greedy = not said or top_k == 1 or temperature == 0.0 or top_p == 0.0
    sent = _scalar(read, "seed", None)
    seed = None if sent is None else request_seed(sent)
    if greedy:
        return SamplingValues(seed=seed, **penalties)
    return SamplingValues(1.0 if temperature is None else temperature, top_k or 0, 1.0 if top_p is None else top_p, seed=seed, **penalties)


def _check_number(name: str, value: float | None, least: float = -np.inf, most: float = np.inf) -> None:
    if value is not None and not (np.isfinite(value) and least <= value <= most):
        raise BadTensorError(f"{name} must be a finite number from {least:g} to {most:g}, found {value:g}")


def _words(read: Read, name: str) -> tuple[tuple[int, ...], ...]:
    tensor = read(name)
    if tensor is None:
        return ()
    try:
        words = decode_word_lists(tensor)
    except ValueError as error:
        raise BadTensorError(f"{name}: {error}") from error
    if len(words) > MOST_STOP_WORDS:
        raise BadTensorError(f"{name} holds {len(words)} words, at most {MOST_STOP_WORDS}")
    return words


def _scalar(read: Read, name: str, default: Any) -> Any:
    tensor = read(name)
    if tensor is None:
        return default
    if tensor.size != 1:
        raise BadTensorError(f"{name} must hold one value, found {tensor.size}")
    return tensor.reshape(-1)[0].item()


def _at_least(read: Read, name: str, least: int, default: int | None = None) -> int:
    value = _scalar(read, name, default)
    if value is None:
        raise BadTensorError(f"{name} is required")
    if value < least:
        raise BadTensorError(f"{name} must be at least {least}, found {value}")
    return int(value)
