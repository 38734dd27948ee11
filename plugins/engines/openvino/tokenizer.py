"""The tokenizer files that travel with an engine."""

import hashlib
import shutil
from pathlib import Path

FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)
"""Everything that transformers reads to encode, decode and apply a chat template."""


def copy_tokenizer(checkpoint: Path, destination: Path) -> None:
    """Copy the files that the checkpoint has."""
    destination.mkdir()
    for name in FILES:
        if (checkpoint / name).is_file():
            shutil.copyfile(checkpoint / name, destination / name)


def tokenizer_digest(folder: Path) -> str:
    """SHA-256 of `tokenizer.json`, or of all tokenizer files where there is none; empty without a tokenizer."""
    names = ["tokenizer.json"] if (folder / "tokenizer.json").is_file() else [n for n in FILES if (folder / n).is_file()]
    if not names:
        return ""
    digest = hashlib.sha256()
    for name in names:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()
