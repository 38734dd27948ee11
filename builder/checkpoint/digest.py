"""Digests of checkpoint folders by content, remembered by inode, size and time."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from builder.checkpoint.hub_folders import holds_headers_only
from builder.checkpoint.values import parse_json
from builder.errors import MissingError

CHUNK_BYTES = 1 << 22
FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "*.gguf", "*.engine")


HASHED_AT_ONCE_BYTES = 2 << 30


def digest_folder(folder: Path, cache_file: Path | None = None) -> str:
    """SHA-256 over names and contents of the files that shape an engine. The cache only spares reading unchanged files again;
    one that cannot be read or written is done without. Raises MissingError CKPT-HUB-HEADERS where only headers are here."""
    if holds_headers_only(folder):
        raise _headers_only(folder)
    return _digest(folder, _read_cache(cache_file), cache_file)


def known_digest(folder: Path, cache_file: Path | None, max_bytes: int = HASHED_AT_ONCE_BYTES) -> str | None:
    """`digest_folder`'s answer if it is quickly had: files that the cache does not know are hashed while they have at most `max_bytes`
    together. None otherwise, and where only the headers of a hub's checkpoint are here."""
    if holds_headers_only(folder):
        return None
    cache = _read_cache(cache_file)
    unknown = sum(file.stat().st_size for file in _files(folder) if _key(file) not in cache)
    return _digest(folder, cache, cache_file) if unknown <= max_bytes else None


def _digest(folder: Path, cache: dict[str, str], cache_file: Path | None) -> str:
    before = len(cache)
    entries = {file.name: _digest_file(file, cache) for file in _files(folder)}
    if cache_file is not None and len(cache) > before:
        _write_cache(cache_file, cache)
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return sorted({f for pattern in FILES for f in folder.glob(pattern) if f.is_file()})


def _key(file: Path) -> str:
    status = file.stat()
    return f"{file}:{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"


def _digest_file(file: Path, cache: dict[str, str]) -> str:
    key = _key(file)
    if key not in cache:
        digest = hashlib.sha256()
        with file.open("rb") as stream:
            while chunk := stream.read(CHUNK_BYTES):
                digest.update(chunk)
        cache[key] = digest.hexdigest()
    return cache[key]


def _headers_only(folder: Path) -> MissingError:
    message = f"{folder} holds the headers of a hub's checkpoint, not its weights: there is nothing to build from"
    fix = "fetch the whole checkpoint: run without --offline, or `hf download` it"
    return MissingError("CKPT-HUB-HEADERS", message, found="headers", needed="weights", fix=fix, file=str(folder))


def _read_cache(file: Path | None) -> dict[str, str]:
    try:
        data = parse_json(file.read_text(encoding="utf-8")) if file else {}
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _write_cache(file: Path, cache: dict[str, str]) -> None:
    partial = file.with_name(f"{file.name}.{os.getpid()}.partial")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(cache, indent=0, sort_keys=True), encoding="utf-8")
        partial.replace(file)
