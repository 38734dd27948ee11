"""Defaults of each model family, from `families.yaml`."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@cache
def families() -> Mapping[str, Mapping[str, Any]]:
    """What each family's configuration class takes for a size that config.json leaves out, by `model_type`."""
    text = files("builder.checkpoint").joinpath("families.yaml").read_text(encoding="utf-8")
    rows: Mapping[str, Mapping[str, Any]] = yaml.load(text, LOADER)["families"]  # noqa: S506 - a safe loader, the quicker one where it is built
    return rows


def defaults_of(model_type: object) -> Mapping[str, Any]:
    """Empty for a family that is not listed."""
    return families().get(str(model_type), {})
