"""Digests of checkpoint folders by content, remembered by inode, size and time."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

CHUNK_BYTES = 1 << 22
FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt")


def digest_folder(folder: Path, cache_file: Path | None = None) -> str:
    """SHA-256 over names and contents of the files that shape an engine. The cache only spares reading unchanged files again;
    one that cannot be read or written is done without."""
    cache = _read_cache(cache_file)
    entries = {}
    for file in sorted({f for pattern in FILES for f in folder.glob(pattern) if f.is_file()}):
        entries[file.name] = _digest_file(file, cache)
    if cache_file is not None:
        _write_cache(cache_file, cache)
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _digest_file(file: Path, cache: dict[str, str]) -> str:
    status = file.stat()
    key = f"{file}:{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
    if key not in cache:
        digest = hashlib.sha256()
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
        cache[key] = digest.hexdigest()
    return cache[key]


def _read_cache(file: Path | None) -> dict[str, str]:
    try:
        data = json.loads(file.read_text(encoding="utf-8")) if file else {}
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write_cache(file: Path, cache: dict[str, str]) -> None:
    partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(cache, indent=0, sort_keys=True), encoding="utf-8")
        partial.replace(file)
