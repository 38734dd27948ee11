"""From a YAML file to a checked pair: all refusals at once, each with file, line and dotted field."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from builder.errors import Finding, FindingsError, RefusedError
from builder.spec.lines import Lines, read_lines
from builder.spec.model import PairSpec
from builder.spec.words import WAY_OUT, known_keys, missing_key, nearest, needed_words, place_of, raw_value, way_out

MOST_SHOWN = 200
"""Letters of a value that a message shows."""
ENDINGS = (".yaml", ".yml")
SYNTAX = {
    "\\t": "indent with spaces: YAML takes no tabs",
    "mapping values are not allowed": "put each key on a line of its own, as far in as its neighbours; quote a value that holds a colon",
    "could not find expected ':'": "put a colon and a space behind the key",
    "while scanning a quoted scalar": "close the quotes",
    "found unexpected end of stream": "close the quotes",
}
"""What the parser says, and what to do."""
ANY_SYNTAX = "correct the indentation, the brackets or the quotes at this line or the one before it"


@dataclass(frozen=True)
class Pair:
    """A pair file that was read and checked, with the paths it names made absolute."""

    file: Path
    spec: PairSpec
    lines: Lines

    @property
    def shown(self) -> Path:
        """The file as a person would type it."""
        return self.file.relative_to(Path.cwd()) if self.file.is_relative_to(Path.cwd()) else self.file

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
        faults = {place_of(fault): fault for fault in reversed(error.errors())}
        raise FindingsError(tuple(_finding(file, text, lines, path, faults[path]) for path in reversed(faults))) from None
    return Pair(file.resolve(), spec, lines)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = _file_beside(file)
        fix = f"did you mean {near}?" if near else "name a pair file; configs/pairs/ holds examples"
        message = f"there is no pair file {file}"
        raise RefusedError("PAIR-FILE-MISSING", message, found=str(file), needed="a YAML file", fix=fix) from None
    except IsADirectoryError:
        near = _file_beside(file / file.name)
        message, fix = f"{file} is a folder", f"name a file in it: {near}" if near else "name a pair file; configs/pairs/ holds examples"
        raise RefusedError("PAIR-FILE-UNREADABLE", message, found="a folder", needed="a YAML file", fix=fix) from None
    except UnicodeDecodeError as error:
        message, fix = f"{file} is no UTF-8 text: {error.reason} at byte {error.start}", "save it as UTF-8 text"
        raise RefusedError("PAIR-FILE-UNREADABLE", message, found="other bytes", needed="UTF-8 text", fix=fix) from None
    except (OSError, ValueError) as error:
        reason = str((isinstance(error, OSError) and error.strerror) or error)
        message, fix = f"{str(file)[:MOST_SHOWN]!r} cannot be read: {reason}", "name a file that you may read"
        raise RefusedError("PAIR-FILE-UNREADABLE", message, found=reason, needed="a YAML file", fix=fix) from None


def _file_beside(file: Path) -> Path | None:
    """The pair file in the same folder that is most like one that is not there."""
    try:
        names = [one.name for one in file.parent.iterdir() if one.suffix in ENDINGS]
    except OSError:
        return None
    near = nearest(file.name, names) or (names[0] if len(names) == 1 else "")
    return file.parent / near if near else None


def _parse(file: Path, text: str) -> tuple[dict[str, Any], Lines]:
    try:
        data, lines = yaml.safe_load(text), read_lines(text)
    except yaml.YAMLError as error:
        raise FindingsError((_syntax(file, error),)) from None
    except (ValueError, RecursionError, OverflowError) as error:
        reason = "its values are nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
        message = f"{file} holds a value that YAML cannot take in: {reason}"
        raise RefusedError("PAIR-YAML", message, found=reason, needed="YAML", fix="correct the date or the number, or quote it") from None
    if not isinstance(data, dict):
        raise RefusedError(
            "PAIR-YAML", f"{file} holds no mapping of keys to values", found=type(data).__name__, needed="a mapping", fix=WAY_OUT
        )
    if lines.duplicates:
        raise FindingsError(tuple(_duplicate(file, lines, path) for path in lines.duplicates))
    return data, lines


def _syntax(file: Path, error: yaml.YAMLError) -> Finding:
    mark = getattr(error, "problem_mark", None)
    line = mark.line + 1 if mark else 0
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML")
    said = f"{getattr(error, 'context', None) or ''} {problem}"
    fix = next((fix for words, fix in SYNTAX.items() if words in said), ANY_SYNTAX)
    return Finding("PAIR-YAML", "error", f"{file}:{line}: {problem}", needed="YAML", fix=fix, file=str(file), line=line)


def _duplicate(file: Path, lines: Lines, path: tuple[str | int, ...]) -> Finding:
    field, line = _dotted(path), lines.nearest(path)
    message = f"{file}:{line}: {field} stands twice"
    return Finding("PAIR-DUPLICATE-KEY", "error", message, field, "two values", "one value", "remove one of them", str(file), line)


def _finding(file: Path, text: str, lines: Lines, path: tuple[str | int, ...], error: Any) -> Finding:
    field, line = _dotted(path) or "the pair file", lines.nearest(path)
    where = f"{file}:{line}"
    if error["type"] == "extra_forbidden":
        return _unknown_key(file, line, path)
    if error["type"] == "missing":
        message = f"{where}: {field} is missing"
        return Finding("PAIR-MISSING-KEY", "error", message, field, "nothing", "a value", missing_key(path), str(file), line)
    raw = raw_value(text, path)
    if error["type"] == "value_error":
        needed, fix = error["msg"].removeprefix("Value error, "), WAY_OUT
        return Finding("PAIR-VALUE", "error", f"{where}: {field}: {needed}", field, raw or "", needed, fix, str(file), line)
    needed, fix = needed_words(error, path), way_out(error, path, raw)
    found = _shown(error["input"], raw)
    near = nearest(raw or "", needed.removeprefix("one of ").split(", ")) if error["type"] == "literal_error" else ""
    message = f"{where}: {field} must be {needed}; found {found}" + (f"; did you mean {near}?" if near else "")
    return Finding("PAIR-VALUE", "error", message, field, found, needed, fix, str(file), line)


def _unknown_key(file: Path, line: int, path: tuple[str | int, ...]) -> Finding:
    known, field = known_keys(path[:-1]), _dotted(path)
    near = nearest(str(path[-1]), known)
    hint = f"; did you mean {near}?" if near else ""
    fix = f"rename it to {near}" if near else f"known keys here: {', '.join(known)}"
    if "{" in str(path[-1]):
        fix = "put a colon and a space behind the key"
    message = f"{file}:{line}: unknown key {field}{hint}"
    return Finding("PAIR-UNKNOWN-KEY", "error", message, field, str(path[-1]), " | ".join(known), fix, str(file), line)


def _shown(value: object, raw: str | None) -> str:
    """A value as the file writes it, or what kind of value it is."""
    if value is None or raw == "":
        return "nothing"
    kinds: tuple[tuple[type, str], ...] = ((dict, "a mapping"), (list, "a list"))
    text = next((words for kind, words in kinds if isinstance(value, kind)), raw if raw is not None else repr(value))
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in path)
