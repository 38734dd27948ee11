"""Digests follow content, not names of folders or dates."""

import os
from collections.abc import Callable
from pathlib import Path

from builder.checkpoint import digest_folder, known_digest

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


def test_known_digest_hashes_little_and_remembers(write_checkpoint: Write, tmp_path: Path) -> None:
    folder, cache = write_checkpoint("a"), tmp_path / "cache.json"
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert known_digest(folder, cache, max_bytes=size - 1) is None
    digest = known_digest(folder, cache, max_bytes=size)
    assert digest == digest_folder(folder)
    assert known_digest(folder, cache, max_bytes=0) == digest
    (folder / "config.json").write_text("{}")
    assert known_digest(folder, cache, max_bytes=0) is None
