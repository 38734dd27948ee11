"""A pair with some of its settings changed."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from builder.errors import Finding, FindingsError
from builder.spec import Pair
from builder.spec.model import PairSpec

Setting = str | int | float | bool | None
Axes = Mapping[str, tuple[Setting, ...]]
"""Dotted field of the pair file to the values it takes."""


def with_settings(pair: Pair, settings: Mapping[str, Setting]) -> Pair:
    """The pair with dotted fields changed and every rule of the pair file asked again.

    With another `hardware.count` the target is split over all chips, and the draft with it in one process, over as many as before on its
    own; a draft whose cache has the target's precision keeps doing so. Not where these are set, too. Raises FindingsError with every value
    that is refused.
    """
    data = pair.spec.model_dump(exclude_unset=True)
    for field, value in {**_followers(pair.spec, settings), **settings}.items():
        _put(data, field, value)
    try:
        spec = PairSpec.model_validate(data)
    except ValidationError as error:
        raise FindingsError(tuple(_refusal(e, settings) for e in error.errors())) from None
    return dataclasses.replace(pair, spec=spec)


def _followers(spec: PairSpec, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings that change with others."""
    followers: dict[str, Setting] = {}
    count = settings.get("hardware.count")
    stages = settings.get("target.pipeline_parallel", spec.target.pipeline_parallel)
    if isinstance(count, int) and isinstance(stages, int) and stages > 0 and count % stages == 0:
        followers["target.tensor_parallel"] = count // stages
    followers |= _of_draft(spec, {**followers, **settings}) if spec.has_draft_model else {}
    return followers


def _of_draft(spec: PairSpec, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """One process splits both models alike; a draft on its own stays split as it is, as far as there are chips."""
    followers: dict[str, Setting] = {}
    count, split = settings.get("hardware.count"), settings.get("target.tensor_parallel")
    single = settings.get("serve.topology", spec.serve.topology) == "single"
    if single and split is not None:
        followers["draft.tensor_parallel"] = split
    elif isinstance(count, int):
        followers["draft.tensor_parallel"] = max(1, min(spec.draft.tensor_parallel, count))
    if spec.draft.kv_cache == spec.target.kv_cache and "target.kv_cache" in settings:
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
