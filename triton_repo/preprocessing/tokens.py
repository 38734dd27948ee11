"""Text to token ids: pure functions over a tokenizer object."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from triton_repo.common.stops import encode_word_lists

IntArray = npt.NDArray[np.int32]


class Tokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    bos_token_id: int | None
    eos_token_id: int | None
    pad_token_id: int | None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]: ...

    def apply_chat_template(self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool) -> Any: ...


@dataclass(frozen=True)
class Settings:
    """What the model's parameters say."""

    add_special_tokens: bool = True
    apply_chat_template: bool = False


def prompt_ids(tokenizer: Tokenizer, text: str, settings: Settings) -> list[int]:
    """Ids of one prompt. With the chat template the text is one user message, and the template brings its own special tokens.

    A text that already begins with the begin token, as one that the client put through the template, does not get a second one.
    Raises ValueError when nothing is left to generate from.
    """
    if settings.apply_chat_template:
        text = tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True)
    ids = tokenizer.encode(text, add_special_tokens=settings.add_special_tokens and not settings.apply_chat_template)
    if len(ids) > 1 and ids[0] == ids[1] == tokenizer.bos_token_id:
        ids = ids[1:]
    if not ids:
        raise ValueError("the prompt has no tokens")
    return ids


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> IntArray:
    """[rows, longest] with `pad_id` on the right."""
    array = np.full((len(rows), max(len(row) for row in rows)), pad_id, dtype=np.int32)
    for i, row in enumerate(rows):
        array[i, : len(row)] = row
    return array


def word_lists(tokenizer: Tokenizer, rows: Sequence[Sequence[str]]) -> IntArray:
    """[rows, 2, n]: the words of each row as ids and end offsets."""
    encoded = [encode_word_lists([tokenizer.encode(word, add_special_tokens=False) for word in row if word]) for row in rows]
    array = np.full((len(rows), 2, max(each.shape[1] for each in encoded)), -1, dtype=np.int32)
    array[:, 0] = 0
    for i, each in enumerate(encoded):
        array[i, :, : each.shape[1]] = each
    return array


def text_of(value: Any) -> str:
    """Raises ValueError when bytes are not UTF-8."""
    try:
        return value.decode("utf-8") if isinstance(value, bytes) else str(value)
    except UnicodeDecodeError as error:
        raise ValueError(f"text is not UTF-8: {error}") from error
