"""Special tokens of a checkpoint by name: their texts from the tokenizer's settings, their ids from its vocabulary or the model's files."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from builder.checkpoint.quantization import read_object
from builder.checkpoint.tokenizer import Tokenizer, read_settings

NAMES = ("bos_token", "eos_token", "pad_token", "unk_token")
FILES_OF_THE_MODEL = ("generation_config.json", "config.json")


@dataclass(frozen=True)
class SpecialToken:
    """One special token. `token_id` is None when its text has no entry in the vocabulary, `text` "" when only an id is known."""

    token_id: int | None
    text: str

    def __str__(self) -> str:
        if self.token_id is None:
            return repr(self.text)
        return f"{self.token_id} ({self.text!r})" if self.text else str(self.token_id)


@dataclass(frozen=True)
class SpecialTokens:
    """`named` holds the tokens that are set, by their names of `NAMES`; `end` every token that ends an answer, sorted by id: the
    tokenizer's and the model's, as the served models take them."""

    named: Mapping[str, SpecialToken]
    end: tuple[SpecialToken, ...]

    @property
    def unknown(self) -> dict[str, SpecialToken]:
        """Tokens that are set to a text which is no entry of the vocabulary."""
        return {name: token for name, token in self.named.items() if token.token_id is None}


def read_special_tokens(tokenizer: Tokenizer, config: Mapping[str, Any], end_ids: Iterable[int]) -> SpecialTokens:
    """From tokenizer_config.json, special_tokens_map.json, generation_config.json and the model's configuration, in this order; `end_ids`
    are the model's.

    Raises RefusedError CKPT-TOKENIZER when one of the tokenizer's is not JSON; the model's reader speaks of its own.
    """
    texts = read_settings(tokenizer.folder, "special_tokens_map.json") | {k: v for k, v in tokenizer.settings.items() if v is not None}
    models = (read_object(tokenizer.folder / FILES_OF_THE_MODEL[0]), config)
    named = {name: token for name in NAMES if (token := _named(name, texts, models, tokenizer)) is not None}
    own = named.get("eos_token")
    ids = {*end_ids} | ({own.token_id} if own and own.token_id is not None else set())
    return SpecialTokens(named, tuple(SpecialToken(i, tokenizer.vocabulary.text_of.get(i, "")) for i in sorted(ids)))


def _named(name: str, texts: Mapping[str, Any], models: tuple[Mapping[str, Any], ...], tokenizer: Tokenizer) -> SpecialToken | None:
    text = _text(texts.get(name))
    if text:
        return SpecialToken(tokenizer.vocabulary.id_of(text), text)
    ids = [i for model in models for i in _ids(model.get(f"{name}_id"))]
    return SpecialToken(ids[0], tokenizer.vocabulary.text_of.get(ids[0], "")) if ids else None


def _text(value: object) -> str:
    """A token is written as its text, or as an object with `content`."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _ids(value: object) -> Iterator[int]:
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, int) and not isinstance(one, bool) and one >= 0:
            yield one
