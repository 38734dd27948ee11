"""Axes of a sweep as they are typed: fields of the pair file and their values."""

import difflib
import types
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from builder.errors import RefusedError
from builder.hardware.chips import chips
from builder.planner.sweep.settings import Axes, Setting
from builder.spec.model import KvCache, PairSpec

MOST_ROWS = 512
LARGEST_NUMBER = 10**15
DEFAULT_AXES = "all"
SHORT_NAMES = {
    "kv": "target.kv_cache",
    "k": "speculation.max_draft_tokens",
    "batch": "limits.max_batch_size",
    "chip": "hardware.chip",
    "count": "hardware.count",
}
CHIP_FORMATS = {"nvfp4": "fp4"}
"""Words of the pair file that configs/chips.yaml spells otherwise."""
USAGE = "--sweep batch=1,8,32; short names: " + ", ".join(f"{short} = {field}" for short, field in SHORT_NAMES.items())
SHOWN = 40
"""Characters of a value that a message repeats."""


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[Setting, ...]]:
    """Axes from `FIELD=V1,V2` each, FIELD dotted or one of the short names. A value has the type of its field: text stays as it is typed.

    Raises RefusedError SWEEP-AXIS-SYNTAX, SWEEP-AXIS-UNKNOWN.
    """
    axes: dict[str, tuple[Setting, ...]] = {}
    known = _types(PairSpec)
    for text in texts:
        name, equals, values = text.partition("=")
        words = [word.strip() for word in values.split(",")]
        if not equals or "" in words:
            raise _syntax(text, f"a sweep is a field and its values, not {_short(text)!r}", "FIELD=VALUE,VALUE")
        field = SHORT_NAMES.get(name.strip(), name.strip())
        _require_setting(field, known)
        axes[field] = tuple(dict.fromkeys((*axes.get(field, ()), *(_value(field, word, known[field]) for word in words))))
    return axes


def default_axes(spec: PairSpec) -> dict[str, tuple[Setting, ...]]:
    """KV precisions that the pair's chip computes with, draft lengths and batches around the pair file's own."""
    chip = chips().get(spec.hardware.chip)
    formats = tuple(word for word in get_args(KvCache) if chip and CHIP_FORMATS.get(word, word) in chip.peak_ops_per_s)
    axes: dict[str, tuple[Setting, ...]] = {"target.kv_cache": _around(spec.target.kv_cache, formats)}
    if spec.draft.method != "none":
        axes["speculation.max_draft_tokens"] = _around(spec.speculation.max_draft_tokens, (2, 4, 8))
    axes["limits.max_batch_size"] = _around(spec.limits.max_batch_size, (1, 8, 32))
    return axes


def combinations(axes: Axes) -> list[dict[str, Setting]]:
    """Every combination of the axes' values, the last axis fastest. Raises RefusedError SWEEP-ROWS above 512."""
    rows = prod(len(values) for values in axes.values())
    if rows > MOST_ROWS:
        sizes = " x ".join(str(len(values)) for values in axes.values())
        message = f"a sweep of {sizes} is {rows} rows, more than anybody reads"
        raise RefusedError("SWEEP-ROWS", message, found=f"{rows} rows", needed=f"at most {MOST_ROWS}", fix="sweep fewer values or fields")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _around(own: Setting, others: tuple[Setting, ...]) -> tuple[Setting, ...]:
    """The own value among others, in order where values are numbers, else first."""
    values = tuple(dict.fromkeys((own, *others)))
    return tuple(sorted(values, key=lambda v: v if isinstance(v, int) else 0))


def _value(field: str, word: str, kinds: frozenset[Any]) -> Setting:
    """A word as its field's type has it. Raises RefusedError SWEEP-AXIS-SYNTAX where it is none."""
    if type(None) in kinds and word in ("null", "~"):
        return None
    if bool in kinds and word.lower() in ("true", "false"):
        return word.lower() == "true"
    number = _number(word) if kinds & {int, float} else None
    if number is not None and (float in kinds or isinstance(number, int)):
        return number
    if str in kinds:
        return word
    needed = "true or false" if bool in kinds else "a number" if float in kinds else "a whole number" if int in kinds else "a value"
    raise _syntax(f"{field}={word}", f"{field} takes {needed}, not {_short(word)!r}", needed)


def _number(word: str) -> int | float | None:
    """A number of at most 15 digits before the point, else None."""
    for read in (int, float):
        try:
            number = read(word)
        except ValueError:
            continue
        return number if abs(number) <= LARGEST_NUMBER else None  # nor is nan
    return None


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _syntax(text: str, message: str, needed: str) -> RefusedError:
    return RefusedError("SWEEP-AXIS-SYNTAX", message, field="--sweep", found=_short(text), needed=needed, fix=USAGE)


def _require_setting(field: str, fields: Mapping[str, Any]) -> None:
    known = [*SHORT_NAMES, *fields]
    if field in fields:
        return
    near = difflib.get_close_matches(field, known, n=1, cutoff=0.4)
    message = f"a pair file has no setting {_short(field)}" + (f"; did you mean {near[0]}?" if near else "")
    fix = f"--sweep {near[0]}=..." if near else USAGE
    raise RefusedError("SWEEP-AXIS-UNKNOWN", message, found=_short(field), needed="a setting of the pair file", fix=fix)


def _types(model: type[BaseModel], prefix: str = "") -> dict[str, frozenset[Any]]:
    """Dotted names of all settings, sections left out, with the types that each may have."""
    found: dict[str, frozenset[Any]] = {}
    for name, info in model.model_fields.items():
        annotation: Any = info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            found |= _types(annotation, f"{prefix}{name}.")
        elif kinds := frozenset(_kinds(annotation)):
            found[f"{prefix}{name}"] = kinds
    return found


def _kinds(annotation: Any) -> list[Any]:
    """Plain types of an annotation; a choice of words counts as text, a section or a mapping as nothing that a word could be."""
    origin = get_origin(annotation)
    if origin is Literal:
        return [str]
    if origin in (Union, types.UnionType):
        kinds = [kind for part in get_args(annotation) for kind in _kinds(part)]
        return kinds if set(kinds) != {type(None)} else []
    if annotation in (int, float, bool, str, type(None)):
        return [annotation]
    return [str] if origin is None and isinstance(annotation, type) and not issubclass(annotation, BaseModel | dict) else []
