"""The files of a fast tokenizer: what its ids mean, what it puts in front of a text, and whether it is code of the checkpoint."""

import hashlib
import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.checkpoint.values import parse_json
from builder.checkpoint.vocabulary import Vocabulary, spelling_of
from builder.errors import RefusedError

FILE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
SLOW_FILES = ("tokenizer.model", "vocab.json", "merges.txt", "vocab.txt", "spiece.model", "tiktoken.model", "tekken.json")
"""What a checkpoint without tokenizer.json may hold in its place; none of them says what every id means."""

_MERGES = re.compile(rb'"merges"\s*:\s*\[')
_MERGES_END = re.compile(rb"\s*}\s*}\s*")


@dataclass(frozen=True)
class Tokenizer:
    """A fast tokenizer. `digest` is tokenizer.json's; `begin_ids` are those that it puts in front of every text by itself; `settings` is
    tokenizer_config.json, {} when there is none."""

    folder: Path
    digest: str
    vocabulary: Vocabulary
    begin_ids: tuple[int, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


def read_tokenizer(folder: Path, like: Tokenizer | None = None) -> Tokenizer:
    """Read a checkpoint's tokenizer; one with the same tokenizer.json as `like` shares its vocabulary.

    Raises RefusedError CKPT-TOKENIZER when there is no fast tokenizer, or none that says what its ids mean.
    """
    file = folder / FILE
    if not file.is_file():
        raise _no_fast_tokenizer(folder)
    settings = read_settings(folder)
    try:
        digest = digest_of(file)
        if like is not None and like.digest == digest and like.settings.get("added_tokens_decoder") == settings.get("added_tokens_decoder"):
            return Tokenizer(folder, digest, like.vocabulary, like.begin_ids, settings)
        data = _load(file)
        vocabulary = _vocabulary(data, settings)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        message, fix = f"{file} cannot be read as a tokenizer: {error}.", "fetch the file again"
        raise _refusal(file, message, found=str(error), fix=fix) from None
    if vocabulary is None:
        kind = data["model"].get("type", "unknown")
        message = f"{file} lists no vocabulary (model type {kind}), so what its ids mean cannot be compared; a fast tokenizer is needed."
        raise _refusal(file, message, found=f"model type {kind}", fix=_save_fast(folder))
    return Tokenizer(folder, digest, vocabulary, tuple(_begin_ids(data.get("post_processor"))), settings)


def read_settings(folder: Path, name: str = SETTINGS) -> dict[str, Any]:
    """A JSON object beside the tokenizer, {} when there is none. Raises RefusedError CKPT-TOKENIZER."""
    file = folder / name
    if not file.is_file():
        return {}
    try:
        settings = parse_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise _refusal(file, f"{file} cannot be read: {error}.", found=str(error), fix="fetch the file again") from None
    if not isinstance(settings, dict):
        raise _refusal(file, f"{file} holds no object.", found=type(settings).__name__, fix="fetch the file again")
    return settings


def digest_of(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _load(file: Path) -> dict[str, Any]:
    """The file's content without its merges, which are most of it: they are left out where they come last, as tokenizers writes them."""
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = _MERGES.search(content)
        end = content.rfind(b"]")
        tail = content[end + 1 :] if end >= 0 else b""
        if start is None or end < start.end() or not _MERGES_END.fullmatch(tail):
            text = content[:].decode("utf-8")
        else:
            text = (content[: start.start()] + b'"merges": []' + tail).decode("utf-8")
    return dict(parse_json(text))


def _vocabulary(data: Mapping[str, Any], settings: Mapping[str, Any]) -> Vocabulary | None:
    listed = data["model"].get("vocab")
    if isinstance(listed, list):
        text_of = {index: str(entry[0]) for index, entry in enumerate(listed)}
    elif isinstance(listed, dict):
        text_of = {int(index): text for text, index in listed.items()}
    else:
        return None
    further = {int(index): str(token["content"]) for index, token in (settings.get("added_tokens_decoder") or {}).items()}
    added = {int(token["id"]): str(token["content"]) for token in data.get("added_tokens") or ()}
    added |= {index: text for index, text in further.items() if index not in text_of and index not in added}
    text_of |= added
    return Vocabulary(text_of, spelling_of(data), frozenset(added))


def _begin_ids(processor: object) -> Iterator[int]:
    """Ids that a post-processor puts before a single text."""
    if not isinstance(processor, Mapping):
        return
    for inner in processor.get("processors") or ():
        yield from _begin_ids(inner)
    known = processor.get("special_tokens") or {}
    for piece in processor.get("single") or ():
        if "SpecialToken" not in piece:
            return
        yield from known[piece["SpecialToken"]["id"]]["ids"]


def _no_fast_tokenizer(folder: Path) -> RefusedError:
    slow = ", ".join(name for name in SLOW_FILES if (folder / name).is_file())
    holds = f"holds {slow} but no" if slow else "holds no"
    message = f"{folder} {holds} {FILE}: a fast tokenizer is needed, to compare what ids mean and to serve."
    fix = _save_fast(folder) if slow else f"copy {FILE} and {SETTINGS} of the model into the folder"
    return _refusal(folder, message, found=slow or "nothing", fix=fix)


def _save_fast(folder: Path) -> str:
    return f"python -c \"from transformers import AutoTokenizer as T; T.from_pretrained('{folder}').save_pretrained('{folder}')\""


def _refusal(file: Path, message: str, *, found: str, fix: str) -> RefusedError:
    return RefusedError("CKPT-TOKENIZER", message, found=found, needed="a fast tokenizer (tokenizer.json)", fix=fix, file=str(file))
