"""Checkpoints from a hub, through huggingface_hub: small files and headers for a plan, the whole snapshot for a build."""

import importlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from builder.checkpoint.hub_folders import HubId, HubSource, snapshot_folder
from builder.checkpoint.safetensors import MAX_HEADER_BYTES, PREFIX_BYTES, HeaderError, Tensor, parse_header
from builder.checkpoint.scales import scale_tensors
from builder.checkpoint.shards import OTHER_FILES
from builder.errors import MissingError, RefusedError

SMALL_FILES = (".json", ".jinja", ".model", ".txt")
SMALL_FILE_BYTES = 64 << 20
SCALE_BYTES = 1 << 20
"""Scales of the KV cache are single numbers; what is larger is none."""
FIRST_BYTES = 1 << 18
"""What is asked of a shard at first; most headers are shorter."""
GAP_BYTES = 1 << 18
"""Scales that lie closer than this are fetched together."""
TIMEOUT_S = 20.0
CONNECTIONS = 8
UNAUTHORIZED = (401, 403)
PARTIAL = 206
FIRST_ERROR = 400
"""Status codes of HTTP."""


@dataclass(frozen=True)
class _File:
    name: str
    size_bytes: int


def fetch_headers(hub_id: HubId, cache: Path, endpoint: str | None, field: str) -> Path:
    """A folder with the model's small files and, for each shard, a sparse file of its size with its header; the snapshot with weights if
    the cache has it. Raises RefusedError, MissingError."""
    with _spoken_errors(hub_id, field):
        info = _api(endpoint).model_info(hub_id.id, revision=hub_id.revision, files_metadata=True, timeout=TIMEOUT_S)
        files = [_File(s.rfilename, s.size or 0) for s in info.siblings or () if "/" not in s.rfilename]
        whole = snapshot_folder(cache, hub_id.id, info.sha, headers_only=False)
        if any(f.name.endswith(".safetensors") for f in files) and all((whole / f.name).is_file() for f in files if _is_part(f)):
            return whole
        folder = snapshot_folder(cache, hub_id.id, info.sha, headers_only=True)
        if not folder.is_dir():
            _fill(folder, [f for f in files if _is_part(f)], _getter(hub_id.id, info.sha, endpoint))
    _remember(folder, hub_id.revision)
    return folder


def fetch_snapshot(source: HubSource, cache: Path, endpoint: str | None, field: str) -> Path:
    """The whole snapshot of a pinned commit. Raises RefusedError, MissingError."""
    with _spoken_errors(HubId(source.id, source.commit), field):
        from huggingface_hub import snapshot_download

        wanted = [f"*{ending}" for ending in (*SMALL_FILES, ".safetensors")]
        left_out = ["*/*", *(f"{beginning}*" for beginning in OTHER_FILES)]
        return Path(
            snapshot_download(
                source.id,
                revision=source.commit,
                cache_dir=cache,
                endpoint=endpoint,
                allow_patterns=wanted,
                ignore_patterns=left_out,
            )
        )


def _is_part(file: _File) -> bool:
    if file.name.startswith(OTHER_FILES):
        return False
    return file.name.endswith(".safetensors") or (file.name.endswith(SMALL_FILES) and file.size_bytes <= SMALL_FILE_BYTES)


def _fill(folder: Path, files: Sequence[_File], get: "_Get") -> None:
    """Beside its place first, so that an interruption leaves nothing half-filled there."""
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    partial.mkdir(parents=True)
    try:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda file: _fetch(partial / file.name, file, get), files))
        try:
            partial.replace(folder)
        except OSError:
            if not folder.is_dir():  # where it is, another process was quicker
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _fetch(path: Path, file: _File, get: "_Get") -> None:
    if not file.name.endswith(".safetensors"):
        path.write_bytes(get(file.name, (0, SMALL_FILE_BYTES), whole=True))
        return
    start = get(file.name, (0, min(FIRST_BYTES, file.size_bytes)))
    end = PREFIX_BYTES + int.from_bytes(start[:PREFIX_BYTES], "little")
    if len(start) < end <= min(file.size_bytes, PREFIX_BYTES + MAX_HEADER_BYTES):
        start += get(file.name, (len(start), end))
    with path.open("wb") as stream:
        stream.write(start[:end])
        for begin, until in _ranges(start[PREFIX_BYTES:end], path):
            stream.seek(begin)
            stream.write(get(file.name, (begin, until)))
        stream.truncate(file.size_bytes)


def _ranges(header: bytes, path: Path) -> list[tuple[int, int]]:
    """Where the scales of the KV cache lie, close ones joined. Nothing of a header that cannot be read: its reader says so."""
    try:
        scales: Sequence[Tensor] = scale_tensors(parse_header(header, path)[0])
    except HeaderError:
        return []
    ranges: list[tuple[int, int]] = []
    for begin, until in sorted((t.begin, t.begin + t.size_bytes) for t in scales if t.size_bytes <= SCALE_BYTES):
        if ranges and begin - ranges[-1][1] <= GAP_BYTES and until - ranges[-1][0] <= MAX_HEADER_BYTES:
            ranges[-1] = (ranges[-1][0], max(until, ranges[-1][1]))
        else:
            ranges.append((begin, until))
    return ranges


def _remember(folder: Path, revision: str) -> None:
    """Which commit a branch or tag stood for, so that --offline finds it again."""
    reference = folder.parent.parent / "refs" / revision
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text(folder.name, encoding="utf-8")


class _Get(Protocol):
    """Bytes of a named file from the first place up to (without) the second; `whole`: the file, which must end before the second place."""

    def __call__(self, name: str, place: tuple[int, int], *, whole: bool = False) -> bytes: ...


def _getter(hub_id: str, commit: str, endpoint: str | None) -> _Get:
    from huggingface_hub import get_session, hf_hub_url

    utils: Any = importlib.import_module("huggingface_hub.utils")
    headers: Mapping[str, str] = utils.build_hf_headers()

    def get(name: str, place: tuple[int, int], *, whole: bool = False) -> bytes:
        url = hf_hub_url(hub_id, name, revision=commit, endpoint=endpoint)
        asked = {} if whole else {"Range": f"bytes={place[0]}-{place[1] - 1}"}
        with get_session().stream("GET", url, headers={**headers, **asked, "Accept-Encoding": "identity"}, timeout=TIMEOUT_S) as response:
            if response.status_code >= FIRST_ERROR:
                response.read()
            utils.hf_raise_for_status(response)
            return _taken(response, name, place, whole)

    return get


def _taken(response: Any, name: str, place: tuple[int, int], whole: bool) -> bytes:
    """The bytes asked for, and no more than they are read. Raises OSError when the server sends others.

    A server that ignores ranges sends the file from its beginning: of use only where that was asked for.
    """
    part = response.status_code == PARTIAL and response.headers.get("Content-Range", "").startswith(f"bytes {place[0]}-")
    if not part and place[0] > 0:
        raise OSError(f"its server sends whole files where a part of {name} was asked for")
    wanted, content = place[1] - place[0], bytearray()
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > wanted:
            break
    if whole and len(content) > wanted:
        raise OSError(f"{name} is larger than the hub says")
    if not whole and len(content) < wanted:
        raise OSError(f"{name} ends after {place[0] + len(content)} bytes, before byte {place[1]}")
    return bytes(content[:wanted])


def _api(endpoint: str | None) -> Any:
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint)


@contextmanager
def _spoken_errors(hub_id: HubId, field: str) -> Iterator[None]:
    """huggingface_hub's errors as this package's."""
    try:
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError:
        raise _no_package(hub_id, field) from None
    try:
        yield
    except errors.GatedRepoError:
        raise _gated(hub_id, field) from None
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.EntryNotFoundError) as error:
        raise _unknown(hub_id, error, field) from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", 0)
        raise (_gated(hub_id, field) if status in UNAUTHORIZED else _unreachable(hub_id, error, field)) from None
    except (errors.HfHubHTTPError.__bases__[0], OSError) as error:
        raise _unreachable(hub_id, error, field) from None


def _no_package(hub_id: HubId, field: str) -> MissingError:
    message = f"{hub_id.id} is a hub id, and huggingface_hub is not installed."
    fix = "pip install huggingface_hub, or name a folder, or pass --models DIR"
    return MissingError("PACKAGE-MISSING", message, field=field, found="not installed", needed="huggingface_hub", fix=fix)


def _gated(hub_id: HubId, field: str) -> RefusedError:
    message = f"{hub_id.id} is gated: its owner grants access on its page, and this machine has no token of an account that has it."
    fix = f"ask for access on the page of {hub_id.id}, then `hf auth login` or set HF_TOKEN"
    return RefusedError("CKPT-HUB-GATED", message, field=field, found="no access", needed="access", fix=fix)


def _unknown(hub_id: HubId, error: Exception, field: str) -> RefusedError:
    from huggingface_hub.errors import RevisionNotFoundError

    if isinstance(error, RevisionNotFoundError):
        message = f"{hub_id.id} has no revision {hub_id.revision} on the hub."
        fix = "take a branch, a tag or a commit of the model's page"
    else:
        message = f"The hub has no model {hub_id.id}, or it is private; there is no folder of that name either."
        fix = "correct the name, or name a folder (a path that begins with ./ or /); for a private model `hf auth login`"
    return RefusedError("CKPT-HUB-UNKNOWN", message, field=field, found=f"{hub_id.id}@{hub_id.revision}", needed="a model's id", fix=fix)


def _unreachable(hub_id: HubId, error: Exception, field: str) -> MissingError:
    reason = next(iter(str(error).splitlines()), "")
    message = f"{hub_id.id} could not be fetched from the hub: {type(error).__name__}: {reason}"
    fix = "try again, or pass --offline to use what is on this machine, or --models DIR"
    return MissingError("CKPT-HUB-UNREACHABLE", message, field=field, found=type(error).__name__, needed="an answer", fix=fix)
