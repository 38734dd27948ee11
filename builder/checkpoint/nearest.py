"""The name that was probably meant, out of those that a folder holds."""

import difflib
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

MOST_NAMES = 2000
CUTOFF = 0.6
"""Likeness of two names, difflib's measure; from here on one is suggested."""


def nearest(name: str, models_dir: Path) -> str:
    """A model's `owner/name` in a folder of models, most like `name`; "" when none is."""
    held = {name.lower(): name for name in islice(_models(models_dir), MOST_NAMES)}
    return held.get(_most_like(name.lower(), list(held)), "")


def nearest_sibling(folder: Path) -> str:
    """The folder beside one that is not there, most like it by name; "" when none is."""
    names: list[str] = []
    with suppress(OSError):
        names = [f.name for f in islice(folder.parent.iterdir(), MOST_NAMES) if f.is_dir() and not f.name.startswith(".")]
    return _most_like(folder.name, names)


def _most_like(name: str, names: list[str]) -> str:
    """By the whole name, else by its last part: a name that begins or goes on with the other is meant too."""
    last = name.rpartition("/")[2]
    parts = {known.rpartition("/")[2]: known for known in names}
    longer = sorted((known for known in parts if last and (known.startswith(last) or last.startswith(known))), key=len)
    same = difflib.get_close_matches(name, names, n=1, cutoff=CUTOFF)
    alike = same or [parts[part] for part in (longer or difflib.get_close_matches(last, list(parts), n=1, cutoff=CUTOFF))[:1]]
    return alike[0] if alike else ""


def _models(models_dir: Path) -> Iterator[str]:
    with suppress(OSError):
        for owner in sorted(models_dir.iterdir()):
            if owner.is_dir() and not owner.name.startswith("."):
                yield from (f"{owner.name}/{model.name}" for model in sorted(owner.iterdir()) if (model / "config.json").is_file())
