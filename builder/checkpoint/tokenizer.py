"""Vocabularies: what each token id means, and whether two checkpoints mean the same."""

import json
from dataclasses import dataclass
from pathlib import Path

from builder.errors import RefusedError


@dataclass(frozen=True)
class Vocabulary:
    """Text of each token id, as the tokenizer file spells it."""

    text_of: dict[int, str]


@dataclass(frozen=True)
class VocabularyDifference:
    """The first token id that means different things, and how many do."""

    token_id: int
    left: str | None
    right: str | None
    count: int


def read_vocabulary(checkpoint: Path) -> Vocabulary | None:
    """Vocabulary of a folder's tokenizer.json; None when the file names no ids. Raises RefusedError CKPT-TOKENIZER."""
    file = checkpoint / "tokenizer.json"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        vocabulary = data["model"].get("vocab")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{file} is no tokenizer file: {error}"
        fix = "fetch the file again"
        raise RefusedError("CKPT-TOKENIZER", message, found=str(error), needed="a tokenizer file", fix=fix, file=str(file)) from None
    if isinstance(vocabulary, list):
        text_of = {index: str(entry[0]) for index, entry in enumerate(vocabulary)}
    elif isinstance(vocabulary, dict):
        text_of = {index: text for text, index in vocabulary.items()}
    else:
        return None
    return Vocabulary(text_of | {token["id"]: token["content"] for token in data.get("added_tokens", [])})


def compare_vocabularies(left: Vocabulary, right: Vocabulary) -> VocabularyDifference | None:
    """None when every id that both have means the same and neither has ids of its own."""
    ids = sorted(left.text_of.keys() | right.text_of.keys())
    different = [i for i in ids if left.text_of.get(i) != right.text_of.get(i)]
    if not different:
        return None
    first = different[0]
    return VocabularyDifference(first, left.text_of.get(first), right.text_of.get(first), len(different))
