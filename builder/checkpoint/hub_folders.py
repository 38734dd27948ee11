"""Where checkpoints of a hub lie on this machine, told from the path alone.

HF_HUB_CACHE/models--owner--name/snapshots/COMMIT/                    a snapshot with its weights, as huggingface_hub keeps it
HF_HUB_CACHE/tandem-headers/models--owner--name/snapshots/COMMIT/     small files and headers: shards are sparse files of the real size
"""

import re
from dataclasses import dataclass
from pathlib import Path

HEADERS_FOLDER = "tandem-headers"
HUB_ID = re.compile(r"(?P<id>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[\w./-]+))?$")
SNAPSHOT = re.compile(r"models--(?P<owner>.+?)--(?P<name>.+)/snapshots/(?P<commit>[0-9a-f]{40})/?$")
DEFAULT_REVISION = "main"


@dataclass(frozen=True)
class HubId:
    """`owner/name` and the revision asked for."""

    id: str
    revision: str = DEFAULT_REVISION


@dataclass(frozen=True)
class HubSource:
    """What a folder of the hub's cache holds: one commit of one model, with its weights or only their headers."""

    id: str
    commit: str
    headers_only: bool


def parse_hub_id(text: str) -> HubId | None:
    """None when the text is no `owner/name` or `owner/name@revision`."""
    found = HUB_ID.match(text)
    return HubId(found["id"], found["revision"] or DEFAULT_REVISION) if found else None


def hub_source(folder: Path) -> HubSource | None:
    """Model and pinned commit of a folder in the hub's cache; None for any other folder."""
    found = SNAPSHOT.search(folder.as_posix())
    return HubSource(f"{found['owner']}/{found['name']}", found["commit"], holds_headers_only(folder)) if found else None


def holds_headers_only(folder: Path) -> bool:
    """Whether the folder's weights are headers in sparse files."""
    return HEADERS_FOLDER in folder.parts


def snapshot_folder(cache: Path, hub_id: str, commit: str, *, headers_only: bool) -> Path:
    """Where a commit of a model lies under the hub's cache."""
    root = cache / HEADERS_FOLDER if headers_only else cache
    return root / f"models--{hub_id.replace('/', '--')}" / "snapshots" / commit
