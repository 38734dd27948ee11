"""One request of tensorrt_llm_bls: its inputs by name, with types, defaults and limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Read = Callable[[str], npt.NDArray[Any] | None]
"""Gives the array of an input by its name, None when the client did not send it."""

TRUE_WORDS = frozenset({"true", "1", "yes", "t"})


class BadRequestError(Exception):
    """The client asked for something that cannot be done. Maps to INVALID_ARG."""


@dataclass(frozen=True)
class Defaults:
    """What the model's parameters say, read once at load."""

    target_model: str
    draft_model: str
    tokenizer_dir: str
    num_draft_tokens: int
    lookup: bool
    adaptive: bool
    max_concurrent_requests: int
    max_input_tokens: int | None
    max_sequence_tokens: int | None
    end_ids: tuple[int, ...]
    shared_vocab_size: int | None

    @staticmethod
    def from_parameters(parameters: Mapping[str, str]) -> "Defaults":
        """Parameters of config.pbtxt; an unfilled `${...}` counts as absent, as in upstream's templates."""
        known = {key: value for key, value in parameters.items() if not value.startswith("${")}
        return Defaults(
            target_model=known.get("tensorrt_llm_model_name") or "tensorrt_llm",
            draft_model=known.get("tensorrt_llm_draft_model_name", ""),
            tokenizer_dir=known.get("tokenizer_dir", ""),
            num_draft_tokens=int(known.get("num_draft_tokens", "0")),
            lookup=known.get("lookup", "true").lower() in TRUE_WORDS,
            adaptive=known.get("adaptive", "true").lower() in TRUE_WORDS,
            max_concurrent_requests=int(known.get("max_concurrent_requests", "32")),
            max_input_tokens=_limit(known, "max_input_tokens"),
            max_sequence_tokens=_limit(known, "max_sequence_tokens"),
            end_ids=tuple(int(part) for part in known.get("end_ids", "").split(",") if part.strip()),
            shared_vocab_size=_limit(known, "shared_vocab_size"),
        )


def _limit(parameters: Mapping[str, str], name: str) -> int | None:
    return int(parameters[name]) if parameters.get(name) else None


@dataclass(frozen=True)
class Sampling:
    """Sampling words of the request; None where the client said nothing."""

    temperature: float | None
    top_k: int | None
    top_p: float | None
    repetition_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    seed: int | None

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always taken: said so (top_k 1, temperature 0, top_p 0), or nothing said at all."""
        if self.top_k == 1 or self.temperature == 0.0 or self.top_p == 0.0:
            return True
        return self.temperature is None and not self.top_k and self.top_p is None


@dataclass(frozen=True)
class GenerateRequest:
    """A checked request. Arrays keep the shape they came in; they go on to preprocessing as they are."""

    text: npt.NDArray[Any]
    max_tokens: int
    min_tokens: int
    stop_words: tuple[str, ...]
    bad_words: npt.NDArray[Any] | None
    end_id: int | None
    pad_id: int | None
    num_draft_tokens: int
    lookup: bool
    stream: bool
    echo: bool
    apply_chat_template: bool | None
    perf_metrics: bool
    sampling: Sampling


def parse(read: Read, defaults: Defaults) -> GenerateRequest:
    """Read and check every input. Raises BadRequestError."""
    text = read("text_input")
    if text is None or text.size != 1:
        found = 0 if text is None else text.size
        raise BadRequestError(f"text_input must hold one prompt a row, found {found}")
    _refuse_unsupported(read)
    return GenerateRequest(
        text=text.reshape(1, 1),
        max_tokens=_required(_integer(read, "max_tokens", least=1), "max_tokens"),
        min_tokens=_integer(read, "min_tokens", least=0) or 0,
        stop_words=_texts(read, "stop_words"),
        bad_words=read("bad_words"),
        end_id=_integer(read, "end_id"),
        pad_id=_integer(read, "pad_id"),
        num_draft_tokens=_draft_tokens(read, defaults),
        lookup=_flag(read, "lookup", defaults.lookup),
        stream=_flag(read, "stream", False),
        echo=not _flag(read, "exclude_input_in_output", True),
        apply_chat_template=_flag(read, "apply_chat_template", None),
        perf_metrics=_flag(read, "return_perf_metrics", False),
        sampling=_sampling(read),
    )


def _refuse_unsupported(read: Read) -> None:
    for name in ("return_log_probs", "return_context_logits", "return_generation_logits", "use_draft_logits"):
        if _flag(read, name, False):
            raise BadRequestError(f"{name} is not offered by tensorrt_llm_bls; ask the model tensorrt_llm directly")
    if (_integer(read, "beam_width") or 1) != 1:
        raise BadRequestError("beam_width must be 1")
    if (_integer(read, "num_return_sequences") or 1) != 1:
        raise BadRequestError("num_return_sequences must be 1")


def _draft_tokens(read: Read, defaults: Defaults) -> int:
    asked = _integer(read, "num_draft_tokens", least=0)
    if asked is not None and asked > defaults.num_draft_tokens:
        raise BadRequestError(f"num_draft_tokens is {asked}, the engine verifies at most {defaults.num_draft_tokens}")
    return defaults.num_draft_tokens if asked is None else asked


def _sampling(read: Read) -> Sampling:
    return Sampling(
        temperature=_number(read, "temperature", least=0.0),
        top_k=_integer(read, "top_k", least=0),
        top_p=_number(read, "top_p", least=0.0, most=1.0),
        repetition_penalty=_number(read, "repetition_penalty", positive=True),
        presence_penalty=_number(read, "presence_penalty"),
        frequency_penalty=_number(read, "frequency_penalty"),
        seed=_integer(read, "seed", least=0),
    )


def _one(read: Read, name: str) -> Any:
    array = read(name)
    if array is None:
        return None
    if array.size != 1:
        raise BadRequestError(f"{name} must hold one value, found {array.size}")
    return array.reshape(-1)[0].item() if isinstance(array, np.ndarray) and array.dtype != object else array.reshape(-1)[0]


def _integer(read: Read, name: str, least: int | None = None) -> int | None:
    value = _one(read, name)
    if value is not None and least is not None and value < least:
        raise BadRequestError(f"{name} must be at least {least}, found {value}")
    return None if value is None else int(value)


def _number(read: Read, name: str, *, least: float = -np.inf, most: float = np.inf, positive: bool = False) -> float | None:
    value = _one(read, name)
    if value is None:
        return None
    if not np.isfinite(value) or not least <= value <= most or (positive and value <= 0):
        needed = "above 0" if positive else "finite" if np.isinf(least) else f"from {least:g} to {most:g}"
        raise BadRequestError(f"{name} must be {needed}, found {value:g}")
    return float(value)


def _flag(read: Read, name: str, default: Any) -> Any:
    value = _one(read, name)
    return default if value is None else bool(value)


def _required(value: int | None, name: str) -> int:
    if value is None:
        raise BadRequestError(f"{name} is required")
    return value


def _texts(read: Read, name: str) -> tuple[str, ...]:
    array = read(name)
    if array is None:
        return ()
    try:
        words = [word.decode("utf-8") if isinstance(word, bytes) else str(word) for word in array.reshape(-1)]
    except UnicodeDecodeError as error:
        raise BadRequestError(f"{name} is not UTF-8: {error}") from error
    return tuple(word for word in words if word)
