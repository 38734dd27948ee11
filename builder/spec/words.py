"""What a pair file's value must be, in plain words, and a way out that can be typed."""

import difflib
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from builder.spec.model import PairSpec

Path = tuple[str | int, ...]
WAY_OUT = "`tandem schema` prints every key; configs/pairs/ holds examples"
NEAR = 0.5
"""Likeness of two words, difflib's measure; from here on one is suggested."""
KINDS = {
    "string": "text",
    "path": "a path, as text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "date": "a date, written as 2026-12-31",
    "model": "a mapping of keys to values",
    "dict": "a mapping of keys to values",
}
"""Beginnings of pydantic's error types, in words."""
BOUNDS = {
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "less than {}"),
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "more than {}"),
}
OPTIONS = ("engine", "options")
"""The one mapping with keys of a lane's own: pydantic names the kinds it tried behind them."""
OPTION_VALUE = "text, a number, or true or false"
PATTERNS = {"name": "letters, digits, dots, underscores and hyphens, at most 63 of them, the first a letter or digit"}


def place_of(error: Mapping[str, Any]) -> Path:
    """The path in the pair file that an error of pydantic is about."""
    path = tuple(map(str, error["loc"]))
    return path[:3] if path[:2] == OPTIONS else path


def needed_words(error: Mapping[str, Any], path: Path) -> str:
    """What must stand there."""
    kind: str = error["type"]
    if path[:2] == OPTIONS and len(path) > len(OPTIONS):
        return OPTION_VALUE
    if kind == "literal_error":
        return "one of " + ", ".join(choices(path))
    if kind in BOUNDS:
        name, words = BOUNDS[kind]
        return words.format(_number(error["ctx"][name]))
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(str(path[-1]), str(error["ctx"]["pattern"]))
    if kind == "string_too_short":
        return "text that is not empty"
    if kind == "model_type":
        return f"a mapping: {example(model_at(path))}"
    if kind == "invalid_key":
        return "a key of text"
    known = next((words for begin, words in KINDS.items() if kind.startswith(f"{begin}_")), None)
    return known or error["msg"].replace("Input should be", "what is there must be")


def way_out(error: Mapping[str, Any], path: Path, raw: str | None) -> str:
    """What to type; `raw` is the value as the file writes it, None where it is no single value."""
    kind, field, value = error["type"], ".".join(map(str, path)), error["input"]
    if field == "speculation.max_draft_tokens" and kind == "greater_than_equal":
        return "to serve the target alone set draft.method: none"
    if value is None:
        return f"give {path[-1]} a value, or leave it out"
    if kind == "invalid_key":
        return f'write "{path[-1]}" in quotes'
    if kind == "literal_error":
        near = nearest(raw or "", choices(path))
        return f"set {field} to {near}" if near else f"set {field} to one of these"
    if kind == "string_type" and raw and path[:2] != OPTIONS:
        return f'write "{raw}" in quotes'
    if kind == "model_type":
        return f"write {path[-1]}: {example(model_at(path), value, raw)}"
    return f"set {field} to {needed_words(error, path)}"


def missing_key(path: Path) -> str:
    """What to add where a key is missing."""
    info, section = model_fields(path[:-1]).get(str(path[-1])), model_at(path)
    value = f": {example(section)}" if section else ""
    inside = f" to {'.'.join(map(str, path[:-1]))}" if path[:-1] else ""
    what = f" ({info.description.rstrip('.')})" if info and info.description else ""
    return f"add {path[-1]}{value}{inside}{what}"


def known_keys(path: Path) -> list[str]:
    """Keys of the section at a path."""
    return list(model_fields(path))


def model_fields(path: Path) -> Mapping[str, FieldInfo]:
    """Fields of the section at a path, by key; none where there is no section."""
    model = model_at(path)
    return model.model_fields if model else {}


def model_at(path: Path) -> type[BaseModel] | None:
    """The section at a path; None where there is none."""
    model: type[BaseModel] | None = PairSpec
    for part in path:
        info = model.model_fields.get(str(part)) if model else None
        model = (
            next((kind for kind in _kinds(info.annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
            if info
            else None
        )
    return model


def choices(path: Path) -> list[str]:
    """The words that a field takes."""
    info = model_fields(path[:-1]).get(str(path[-1]))
    found = [kind for kind in _kinds(info.annotation if info else None) if get_origin(kind) is Literal]
    return [str(word) for kind in found for word in get_args(kind)]


def nearest(word: str, known: Sequence[str]) -> str:
    """The known word that was probably meant, whatever its letters' case; "" when none is."""
    by_case = {one.lower().replace("-", "_"): one for one in known}
    found = difflib.get_close_matches(word.lower().replace("-", "_"), list(by_case), n=1, cutoff=NEAR)
    return by_case[found[0]] if found else ""


def raw_value(text: str, path: Path) -> str | None:
    """A single value as the file writes it (1.10 is a number to YAML, and its zero is lost); None where there is none."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    for part in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        node = next((value for key, value in pairs if key.value == str(part)), None)
    return str(node.value) if isinstance(node, yaml.ScalarNode) else None


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """Members of a union, or the annotation alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def example(model: type[BaseModel] | None, value: object = None, raw: str | None = None) -> str:
    """A section with the keys that it needs, or its first key; a single value that stands in its place becomes that of the first key of
    its kind."""
    fields = model.model_fields if model else {}
    names = [name for name, info in fields.items() if info.is_required()]
    first = next((name for name in names if raw and _takes(fields[name].annotation, value)), "")
    return "{" + ", ".join(f"{name}: {raw if name == first else '...'}" for name in names or list(fields)[:1]) + "}"


def _takes(annotation: Any, value: object) -> bool:
    return type(value) in _kinds(annotation) or (type(value) is int and float in _kinds(annotation))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
