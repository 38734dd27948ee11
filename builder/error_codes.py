"""The catalogue of error codes, `builder/error_codes.yaml`, and the page that is made of it."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

import yaml

from builder.errors import RefusedError

HEADER = """\
# Errors

Every error and warning has a code that stays the same from release to release. `tandem explain CODE` prints its row.
This page is made of `builder/error_codes.yaml` by `make errors`.

Exit codes: 0 done, 1 a verdict that is not a pass, 2 refused, 3 something is missing here, 4 a stage failed, 130 interrupted.
"""


@dataclass(frozen=True)
class ErrorCode:
    """One code: what it means and what to do, a sentence each; `group` is the title of its prefix."""

    code: str
    group: str
    meaning: str
    way_out: str

    def as_dict(self) -> dict[str, str]:
        return dict(self.__dict__)


@cache
def error_codes() -> Mapping[str, ErrorCode]:
    """Every code of this release, sorted. A key of the file without a hyphen titles the codes that begin with it."""
    rows = yaml.safe_load(files("builder").joinpath("error_codes.yaml").read_text(encoding="utf-8"))
    return {code: ErrorCode(code, str(rows.get(_prefix(code), _prefix(code))), **row) for code, row in sorted(rows.items()) if "-" in code}


def _prefix(code: str) -> str:
    return code.split("-")[0]


def find_code(code: str) -> ErrorCode:
    """The row of a code, upper or lower case. Raises RefusedError EXPLAIN-UNKNOWN with the nearest one."""
    known = error_codes()
    if code.upper() in known:
        return known[code.upper()]
    near = difflib.get_close_matches(code.upper(), known, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else "; a plug-in from elsewhere has codes of its own"
    fix = f"tandem explain {near[0]}" if near else "tandem explain"
    raise RefusedError("EXPLAIN-UNKNOWN", f"no error has the code {code}{hint}", found=code, needed="a code of this release", fix=fix)


def by_group() -> Sequence[tuple[str, tuple[ErrorCode, ...]]]:
    """The codes under their titles, titles sorted; prefixes of one title stand together."""
    rows = sorted(error_codes().values(), key=lambda row: (row.group, row.code))
    return [(title, tuple(group)) for title, group in groupby(rows, key=lambda row: row.group)]


def codes_as_markdown() -> str:
    """docs/errors.md: one table for each title."""
    tables = (f"## {title}\n\n| Code | Meaning | Way out |\n|---|---|---|\n{_lines(rows)}" for title, rows in by_group())
    return "\n".join((HEADER, *tables))


def _lines(rows: Sequence[ErrorCode]) -> str:
    return "".join(f"| `{row.code}` | {_cell(row.meaning)} | {_cell(row.way_out)} |\n" for row in rows)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
