"""Models that can draft for a target, to name in a refusal: folders beside it, or public models of `small_models.yaml`."""

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from builder.checkpoint.tokenizer import FILE, digest_of
from builder.planner.checks.models import Model

MOST_OF_TARGET = 1 / 4
"""A suggested draft has at most this share of the target's parameters, or of the bytes of its weights."""
MOST_FOLDERS = 200


def suggestion(target: Model) -> str:
    """`, for example NAME ...`; "" when no small model with the target's tokenizer is known."""
    with suppress(OSError):  # a folder that may not be read holds no suggestion
        for folder in _beside(target):
            return f", for example {folder.name} beside the target"
    drafts = known_drafts(target)
    return f", for example {drafts[0]}" if drafts else ""


def known_drafts(target: Model) -> tuple[str, ...]:
    """Hub ids of small models of the target's family, smallest first."""
    named_ids = target.tokenizer.vocabulary.end if target.tokenizer else target.width
    rows = [r for r in _families() if target.checkpoint.model_type in r["model_types"] and named_ids == r["named_ids"]]
    most = target.checkpoint.parameters * MOST_OF_TARGET
    return tuple(draft["id"] for row in rows for draft in row["drafts"] if draft["parameters"] <= most)


def _beside(target: Model) -> Iterator[Path]:
    """Folders next to the target's with the same tokenizer.json and much smaller weights."""
    if target.tokenizer is None:
        return
    own = target.checkpoint.path
    size_bytes, most_bytes = (own / FILE).stat().st_size, MOST_OF_TARGET * _weights_bytes(own)
    for folder in islice(sorted(own.parent.iterdir()), MOST_FOLDERS):
        file = folder / FILE
        if folder == own or not file.is_file() or file.stat().st_size != size_bytes or not 0 < _weights_bytes(folder) <= most_bytes:
            continue
        if digest_of(file) == target.tokenizer.digest:
            yield folder


def _weights_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.safetensors"))


@cache
def _families() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["families"])
