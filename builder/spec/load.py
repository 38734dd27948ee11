"""From a YAML file to a checked pair: all refusals at once, each with file, line and dotted field."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from builder.errors import Finding, FindingsError, RefusedError
from builder.spec.lines import Lines, read_lines
from builder.spec.model import PairSpec

WAY_OUT = "`tandem schema` prints every key; configs/pairs/ holds examples"


@dataclass(frozen=True)
class Pair:
    """A pair file that was read and checked, with the paths it names made absolute."""

    file: Path
    spec: PairSpec
    lines: Lines

    @property
    def measured_times(self) -> Path | None:
        """The user's file of measured step times."""
        return None if self.spec.planning.measured is None else self._absolute(str(self.spec.planning.measured))

    def line(self, field: str) -> int:
        """Line of a dotted field, or of its nearest parent that the file names."""
        return self.lines.nearest(tuple(field.split(".")))

    def _absolute(self, path: str) -> Path:
        return (self.file.parent / Path(path).expanduser()).resolve()


def load_pair(file: Path) -> Pair:
    """Read and check a pair file. Raises RefusedError with every fault found."""
    text = _read(file)
    data, lines = _parse(file, text)
    try:
        spec = PairSpec.model_validate(data)
    except ValidationError as error:
        raise FindingsError(tuple(_finding(file, lines, e) for e in error.errors())) from None
    return Pair(file.resolve(), spec, lines)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RefusedError(
            "PAIR-FILE-MISSING", f"there is no pair file {file}", found=str(file), needed="a YAML file", fix=WAY_OUT
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedError("PAIR-FILE-UNREADABLE", f"{file} cannot be read: {error}", found=str(file), needed="a UTF-8 YAML file") from None


def _parse(file: Path, text: str) -> tuple[dict[str, Any], Lines]:
    try:
        data, lines = yaml.safe_load(text), read_lines(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        problem = getattr(error, "problem", None) or "not YAML"
        finding = Finding("PAIR-YAML", "error", f"{file}:{line}: {problem}", needed="YAML", fix=WAY_OUT, file=str(file), line=line)
        raise FindingsError((finding,)) from None
    if not isinstance(data, dict):
        raise RefusedError(
            "PAIR-YAML", f"{file} holds no mapping of keys to values", found=type(data).__name__, needed="a mapping", fix=WAY_OUT
        )
    if lines.duplicates:
        raise FindingsError(tuple(_duplicate(file, lines, path) for path in lines.duplicates))
    return data, lines


def _duplicate(file: Path, lines: Lines, path: tuple[str | int, ...]) -> Finding:
    field, line = _dotted(path), lines.nearest(path)
    message = f"{file}:{line}: {field} stands twice"
    return Finding("PAIR-DUPLICATE-KEY", "error", message, field, "two values", "one value", "remove one of them", str(file), line)


def _finding(file: Path, lines: Lines, error: Any) -> Finding:
    path = tuple(error["loc"])
    field, line = _dotted(path) or "the pair file", lines.nearest(path)
    where = f"{file}:{line}"
    if error["type"] == "extra_forbidden":
        known = _known_keys(path[:-1])
        near = difflib.get_close_matches(str(path[-1]), known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        fix = f"rename it to {near[0]}" if near else f"known keys here: {', '.join(known)}"
        message = f"{where}: unknown key {field}{hint}"
        return Finding("PAIR-UNKNOWN-KEY", "error", message, field, str(path[-1]), " | ".join(known), fix, str(file), line)
    if error["type"] == "missing":
        message = f"{where}: {field} is missing"
        return Finding("PAIR-MISSING-KEY", "error", message, field, "nothing", "a value", WAY_OUT, str(file), line)
    needed = error["msg"].removeprefix("Value error, ")
    found = "" if isinstance(error["input"], dict) else repr(error["input"])
    message = f"{where}: {field}: {needed}" + (f", found {found}" if found else "")
    return Finding("PAIR-VALUE", "error", message, field, found, needed, _fix(field), str(file), line)


def _fix(field: str) -> str:
    if field == "speculation.max_draft_tokens":
        return "to serve the target alone set draft.method: none"
    return WAY_OUT


def _known_keys(path: tuple[str | int, ...]) -> list[str]:
    model: type[BaseModel] = PairSpec
    for part in path:
        annotation = model.model_fields[str(part)].annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, BaseModel)
        model = annotation
    return list(model.model_fields)


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)
