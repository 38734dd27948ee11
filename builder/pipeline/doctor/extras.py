"""Optional dependencies of a distribution, as its metadata states them, against what is installed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

from builder.planner.speed.aiconfigurator import INSTALL

OWN = "trt-tandem"
DEVELOPMENT = "dev"
OTHER_WAYS = {"speed": INSTALL}
"""Extras that are not installed by name: beside the server's packages this one is whole without its dependencies."""
_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PIN = re.compile(r"==\s*([^\s;,]+)")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


@dataclass(frozen=True)
class Extra:
    """One extra: packages that are not installed, and those installed in another version than the pinned one."""

    name: str
    missing: tuple[str, ...]
    others: tuple[str, ...]
    fix: str

    @property
    def ready(self) -> bool:
        return not self.missing

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "missing": list(self.missing), "others": list(self.others), "ready": self.ready}


def read_extras(name: str = OWN) -> tuple[Extra, ...]:
    """The extras that users install; none when the distribution has no metadata here."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return ()
    extras = sorted(set(found.metadata.get_all("Provides-Extra") or ()) - {DEVELOPMENT})
    return tuple(judge(name, extra, found.requires or []) for extra in extras)


def judge(distribution_name: str, extra: str, requirements: Sequence[str]) -> Extra:
    """One extra's requirements against what is installed."""
    missing, others = [], []
    for requirement in requirements:
        marker = _EXTRA.search(requirement)
        if marker is None or marker[1] != extra:
            continue
        name, pin, installed = _NAME.match(requirement), _PIN.search(requirement), _installed(requirement)
        assert name is not None
        if not installed:
            missing.append(name[0])
        elif pin and pin[1] != installed.split("+")[0]:  # what follows + is the build of the same version
            others.append(f"{name[0]} {installed} (pinned: {pin[1]})")
    return Extra(extra, tuple(missing), tuple(others), _command(distribution_name, extra) if missing else "")


def _command(distribution_name: str, extra: str) -> str:
    """How to install an extra: by its name, but for those that would drag in what the others refuse."""
    own = OTHER_WAYS.get(extra) if distribution_name == OWN else None
    return own or f"pip install '{distribution_name}[{extra}]'"


def _installed(requirement: str) -> str:
    name = _NAME.match(requirement)
    try:
        return version(name[0]) if name else ""
    except PackageNotFoundError:
        return ""


def install_command(distribution_name: str, extra: str, packages: Sequence[str]) -> str:
    """How to install packages that a plug-in lacks: by the extra of its distribution that bears its name, else one by one."""
    try:
        extras = distribution(distribution_name).metadata.get_all("Provides-Extra") or []
    except PackageNotFoundError:
        extras = []
    return f"pip install '{distribution_name}[{extra}]'" if extra in extras else f"pip install {' '.join(packages)}"
