"""One thing that was looked at, and the ways to look."""

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from builder.errors import TandemError

Step = Literal["build", "serve", "info"]
"""What cannot be done without it; `info` is needed by no lane of its own."""


@dataclass(frozen=True)
class Check:
    """Whether a thing is here, what was found, and the command that mends it."""

    name: str
    step: Step
    present: bool
    found: str
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def asked(name: str, step: Step, question: Callable[[], str], fix: str) -> Check:
    """An answer is what was found; an error means that it is not here, and carries a better way out when it has one."""
    try:
        return Check(name, step, True, question())
    except TandemError as error:
        return Check(name, step, False, str(error), error.finding.fix or fix)


def modules(name: str, step: Step, wanted: Iterable[str], fix: str) -> Check:
    """Whether modules can be found; none is imported."""
    missing = [module for module in wanted if importlib.util.find_spec(module) is None]
    return Check(name, step, not missing, f"no {', '.join(missing)}" if missing else "installed", fix if missing else "")
