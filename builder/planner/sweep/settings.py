"""A pair with some of its settings changed, and the axes of a sweep as they are typed."""

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from builder.errors import Finding, FindingsError, RefusedError
from builder.hardware.chips import chips
from builder.spec import Pair
from builder.spec.model import KvCache, PairSpec

Setting = str | int | float | bool | None
Axes = Mapping[str, tuple[Setting, ...]]
"""Dotted field of the pair file to the values it takes."""

MOST_ROWS = 512
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


def with_settings(pair: Pair, settings: Mapping[str, Setting]) -> Pair:
    """The pair with dotted fields changed and every rule of the pair file asked again.

    With another `hardware.count` the target is split over all chips, and a draft whose cache has the target's precision keeps doing so,
    unless `target.tensor_parallel` or `draft.kv_cache` is set, too. Raises FindingsError with every value that is refused.
    """
    data = pair.spec.model_dump(exclude_unset=True)
    for field, value in {**_followers(pair.spec, settings), **settings}.items():
        _put(data, field, value)
    try:
        spec = PairSpec.model_validate(data)
    except ValidationError as error:
        raise FindingsError(tuple(_refusal(e, settings) for e in error.errors())) from None
    return dataclasses.replace(pair, spec=spec)


def parse_axes(texts: Sequence[str]) -> dict[str, tuple[Setting, ...]]:
    """Axes from `FIELD=V1,V2` each, FIELD dotted or one of the short names.

    Raises RefusedError SWEEP-AXIS-SYNTAX, SWEEP-AXIS-UNKNOWN.
    """
    axes: dict[str, tuple[Setting, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        words = [word.strip() for word in values.split(",")]
        if not equals or "" in words:
            message = f"a sweep is a field and its values, not {text!r}"
            raise RefusedError("SWEEP-AXIS-SYNTAX", message, found=text, needed="FIELD=VALUE,VALUE", fix=USAGE)
        field = SHORT_NAMES.get(name.strip(), name.strip())
        _require_setting(field)
        axes[field] = tuple(dict.fromkeys((*axes.get(field, ()), *(yaml.safe_load(word) for word in words))))
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


def _followers(spec: PairSpec, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings that change with others."""
    followers: dict[str, Setting] = {}
    count = settings.get("hardware.count")
    if isinstance(count, int) and count % spec.target.pipeline_parallel == 0:
        followers["target.tensor_parallel"] = count // spec.target.pipeline_parallel
    if spec.has_draft_model and spec.draft.kv_cache == spec.target.kv_cache and "target.kv_cache" in settings:
        followers["draft.kv_cache"] = settings["target.kv_cache"]
    return followers


def _put(data: dict[str, Any], field: str, value: Setting) -> None:
    *sections, name = field.split(".")
    for section in sections:
        if not isinstance(data.get(section), dict):
            data[section] = {}
        data = data[section]
    data[name] = value


def _refusal(error: Any, settings: Mapping[str, Setting]) -> Finding:
    field = ".".join(str(part) for part in error["loc"])
    needed = error["msg"].removeprefix("Value error, ")
    swept = ", ".join(f"{name} {value}" for name, value in settings.items() if name.startswith(field))
    message = f"{swept or field or 'the pair'}: {needed}"
    return Finding("PAIR-VALUE", "error", message, field, swept, needed, "leave this value out of the sweep")


def _require_setting(field: str) -> None:
    known = [*SHORT_NAMES, *_fields(PairSpec)]
    if field in known:
        return
    near = difflib.get_close_matches(field, known, n=1, cutoff=0.4)
    message = f"a pair file has no setting {field}" + (f"; did you mean {near[0]}?" if near else "")
    fix = f"--sweep {near[0]}=..." if near else USAGE
    raise RefusedError("SWEEP-AXIS-UNKNOWN", message, found=field, needed="a setting of the pair file", fix=fix)


def _fields(model: type[BaseModel], prefix: str = "") -> list[str]:
    """Dotted names of all settings, sections left out."""
    names: list[str] = []
    for name, info in model.model_fields.items():
        annotation: Any = info.annotation
        section = isinstance(annotation, type) and issubclass(annotation, BaseModel)
        names += _fields(annotation, f"{prefix}{name}.") if section else [f"{prefix}{name}"]
    return names
