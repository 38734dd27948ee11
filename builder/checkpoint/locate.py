"""Where a pair file's checkpoint lies: a folder, a folder of models, or a hub's cache."""

import os
from dataclasses import dataclass
from pathlib import Path

from builder.api.engine import Role
from builder.checkpoint.hub_folders import HubId, hub_source, parse_hub_id, snapshot_folder
from builder.checkpoint.nearest import nearest
from builder.errors import MissingError, RefusedError, TandemError

PLAIN_PATHS = ("/", ".", "~")
MOST_SHOWN = 60
"""Letters of a name that a message shows."""
MOST_NAME = 200
"""Most letters of an owner, a name with its revision, or a part of a revision: a folder of the cache is named by them."""
WEIGHTS = ("*.safetensors", "*.gguf")


@dataclass(frozen=True)
class ModelAccess:
    """How checkpoints may be reached. `models_dir` holds some as `owner/name`; `offline` forbids the network.

    `hub_cache` and `endpoint` are huggingface_hub's own (HF_HUB_CACHE, HF_ENDPOINT) when None.
    """

    models_dir: Path | None = None
    offline: bool = False
    hub_cache: Path | None = None
    endpoint: str | None = None

    @property
    def cache(self) -> Path:
        return self.hub_cache or _default_cache()

    @property
    def hub_endpoint(self) -> str | None:
        """As the environment has it now: huggingface_hub reads it once, when it is imported."""
        return self.endpoint or os.environ.get("HF_ENDPOINT") or None

    @property
    def may_ask_hub(self) -> bool:
        return not self.offline and os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("", "0", "false", "no", "off")


def locate_checkpoint(text: str, base_dir: Path, role: Role, access: ModelAccess) -> Path:
    """The folder of a checkpoint that a pair file names as `text`; a relative path starts at `base_dir`.

    A hub's model is pinned to a commit, which the folder's path records (`hub_source` tells it); of its weights only the headers are
    fetched, as sparse files. A path that is not there is returned as it is: reading it says so. Raises RefusedError CKPT-HUB-UNKNOWN,
    CKPT-HUB-GATED; MissingError CKPT-HUB-OFFLINE, CKPT-HUB-UNREACHABLE, PACKAGE-MISSING.
    """
    folder, exists = _path(text, base_dir, f"{role}.checkpoint")
    hub_id = None if exists or text.startswith(PLAIN_PATHS) else parse_hub_id(text)
    if hub_id is None:
        if not exists and access.models_dir is not None:
            raise _nowhere(text, folder, access.models_dir, f"{role}.checkpoint")
        return folder
    if max(map(len, text.split("/"))) > MOST_NAME:
        raise _no_name(text, f"a hub's names have at most {MOST_NAME} letters", f"{role}.checkpoint")
    if access.models_dir is not None:
        for name in (text, hub_id.id):
            if (access.models_dir / name).is_dir():
                return (access.models_dir / name).resolve()
    if (base_dir / hub_id.id.split("/")[0]).is_dir():
        return folder
    if access.may_ask_hub:
        return _headers(hub_id, access, f"{role}.checkpoint")
    found = _in_cache(hub_id, access.cache)
    if found is None:
        raise _offline(hub_id, access, f"{role}.checkpoint")
    return found


def _headers(hub_id: HubId, access: ModelAccess, field: str) -> Path:
    from builder.checkpoint.hub import fetch_headers

    try:
        return fetch_headers(hub_id, access.cache, access.hub_endpoint, field)
    except TandemError as error:
        raise _with_places(error, hub_id, access) from None


def _path(text: str, base_dir: Path, field: str) -> tuple[Path, bool]:
    """The path that the text names, and whether it is there. Raises RefusedError CKPT-MISSING for what can be no path."""
    try:
        folder = (base_dir / Path(text).expanduser()).resolve()
        folder.stat()
    except FileNotFoundError:
        return folder, False
    except (OSError, ValueError, RuntimeError) as error:
        raise _no_name(text, str((isinstance(error, OSError) and error.strerror) or error), field) from None
    return folder, True


def _no_name(text: str, reason: str, field: str) -> RefusedError:
    shown = repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}...")
    message = f"{shown} cannot be the name of a checkpoint: {reason}"
    fix = "name a folder, or a hub id (owner/name)"
    return RefusedError("CKPT-MISSING", message, field=field, found=shown, needed="a checkpoint folder", fix=fix)


def fetch_checkpoint(folder: Path, role: Role, access: ModelAccess) -> Path:
    """The folder with all weights, for a build: itself, or the whole snapshot of the commit whose headers it holds. Raises as above."""
    source = hub_source(folder)
    if source is None or not source.headers_only:
        return folder
    if not access.may_ask_hub:
        raise _offline(HubId(source.id, source.commit), access, f"{role}.checkpoint")
    from builder.checkpoint.hub import fetch_snapshot

    return fetch_snapshot(source, access.cache, access.hub_endpoint, f"{role}.checkpoint")


def _in_cache(hub_id: HubId, cache: Path) -> Path | None:
    """A snapshot with weights, else one of headers; the commit from what was asked for last."""
    for headers_only in (False, True):
        root = snapshot_folder(cache, hub_id.id, "", headers_only=headers_only).parent
        reference = root / "refs" / hub_id.revision
        commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else hub_id.revision
        folder = root / "snapshots" / commit
        if any(any(folder.glob(pattern)) for pattern in WEIGHTS):
            return folder
    return None


def _default_cache() -> Path:
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _nowhere(text: str, folder: Path, models_dir: Path, field: str) -> RefusedError:
    near = nearest(text, models_dir)
    message = f"there is no folder {folder}, and none of that name in {models_dir} (--models)"
    fix = f"set {field} to {near}" if near else "correct the name; a model of the hub is named owner/name"
    return RefusedError("CKPT-MISSING", message, field=field, found=text, needed=near or "a checkpoint folder", fix=fix)


def _with_places(error: TandemError, hub_id: HubId, access: ModelAccess) -> TandemError:
    """The hub's refusal, with where else was searched and what stands there under a name like it."""
    if access.models_dir is None:
        return error
    near, old = nearest(hub_id.id, access.models_dir), error.finding
    message = f"{old.message.rstrip('.')}; {access.models_dir} (--models) does not hold it either."
    fix = f"set {old.field} to {near}, which is there; or {old.fix}" if near else old.fix
    return type(error)(old.code, message, field=old.field, found=old.found, needed=old.needed, fix=fix, file=old.file)


def _offline(hub_id: HubId, access: ModelAccess, field: str) -> MissingError:
    searched = [str(access.cache)] + ([str(access.models_dir)] if access.models_dir else [])
    message = (
        f"{hub_id.id} (revision {hub_id.revision}) is not on this machine (searched {' and '.join(searched)}), "
        "and the hub may not be asked (--offline or HF_HUB_OFFLINE)."
    )
    fix = f"run once without --offline, or put the checkpoint under DIR/{hub_id.id} and pass --models DIR"
    near = nearest(hub_id.id, access.models_dir) if access.models_dir else ""
    if near:
        fix = f"set {field} to {near}, which is there; or {fix}"
    return MissingError("CKPT-HUB-OFFLINE", message, field=field, found="nothing", needed=hub_id.id, fix=fix)
