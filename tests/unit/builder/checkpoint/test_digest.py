"""Digests follow content, not names of folders or dates."""

import os
from collections.abc import Callable
from pathlib import Path

from builder.checkpoint import digest_folder

Write = Callable[..., Path]


def test_same_content_same_digest(write_checkpoint: Write) -> None:
    assert digest_folder(write_checkpoint("a")) == digest_folder(write_checkpoint("b"))


def test_other_content_other_digest(write_checkpoint: Write, tmp_path: Path) -> None:
    folder, cache = write_checkpoint("a"), tmp_path / "cache.json"
    before = digest_folder(folder, cache)
    assert digest_folder(folder, cache) == before
    with (folder / "model.safetensors").open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        stream.write(b"\x01")
    assert digest_folder(folder, cache) != before


def test_broken_cache_is_ignored(write_checkpoint: Write, tmp_path: Path) -> None:
    folder, cache = write_checkpoint("a"), tmp_path / "cache.json"
    before = digest_folder(folder, cache)
    cache.write_text("[1")
    assert digest_folder(folder, cache) == before
