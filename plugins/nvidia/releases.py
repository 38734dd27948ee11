"""Releases of TensorRT-LLM and the Triton images that carry them: rows of `configs/releases.yaml`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

Number = tuple[int, int, int, int]

_NAME = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:rc(\d+))?")
_NO_CANDIDATE = 1_000_000
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader, in C where it is there: ten times as fast."""


@dataclass(frozen=True)
class Release:
    """One release and what it is built with; "" where that is not known. `certainty` is sure, bracketed or inferred."""

    name: str
    tensorrt: str
    cuda: str
    modelopt: str
    certainty: str
    source: str

    @property
    def number(self) -> Number:
        return release_number(self.name)

    @property
    def candidate(self) -> bool:
        return "rc" in self.name


@dataclass(frozen=True)
class Container:
    """A Triton image, by its tag's year and month, and the release in it."""

    tag: str
    release: str
    certainty: str
    source: str

    @property
    def image(self) -> str:
        return f"nvcr.io/nvidia/tritonserver:{self.tag}-trtllm-python-py3"


def release_number(name: str) -> Number:
    """Numbers that sort as releases do: a candidate stands before its release. Raises ValueError for what is no release name."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not a release name")
    major, minor, patch, candidate = match.groups()
    return int(major), int(minor), int(patch or 0), int(candidate) if candidate else _NO_CANDIDATE


def at_least(release: Release, name: str) -> bool:
    """Whether `release` is `name` or later; "" is before all."""
    return not name or release.number >= release_number(name)


def at_most(release: Release, name: str) -> bool:
    """Whether `release` is `name` or earlier; "" is after all."""
    return not name or release.number <= release_number(name)


@cache
def release_data() -> Mapping[str, Any]:
    """The whole file."""
    text = files("configs").joinpath("releases.yaml").read_text(encoding="utf-8")
    content: Mapping[str, Any] = yaml.load(text, Loader=LOADER)  # noqa: S506
    return content


@cache
def releases() -> Mapping[str, Release]:
    """Every known release by name, earliest first."""
    rows = {name: Release(name=name, **row) for name, row in release_data()["releases"].items()}
    return dict(sorted(rows.items(), key=lambda item: item[1].number))


@cache
def containers() -> tuple[Container, ...]:
    """Every known Triton image, earliest first."""
    return tuple(Container(tag=tag, **row) for tag, row in sorted(release_data()["containers"].items()))


def images_of(release: Release) -> tuple[Container, ...]:
    """The images that carry exactly this release."""
    return tuple(c for c in containers() if c.release == release.name)


def known_release(name: str) -> Release | None:
    """The row of a name, with or without a leading v."""
    return releases().get(name.removeprefix("v"))


def nearest_release(name: str, among: Sequence[Release]) -> Release:
    """The one with the nearest number; for what is no number, the last that is final."""
    try:
        number = release_number(name)
    except ValueError:
        return [r for r in among if not r.candidate][-1]
    return min(among, key=lambda release: distance(release.number, number))


def distance(one: Number, other: Number) -> Number:
    """How far two releases are apart, the largest step first."""
    major, minor, patch, candidate = (abs(a - b) for a, b in zip(one, other, strict=True))
    return major, minor, patch, candidate
