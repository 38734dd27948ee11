"""Names of public models that can draft for a target, from `small_models.yaml`."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from builder.planner.checks.models import Model

MOST_OF_TARGET = 1 / 4
"""A suggested draft has at most this share of the target's parameters."""


def suggestion(target: Model) -> str:
    """`, for example NAME`; "" when no small model with the target's tokenizer is known."""
    drafts = known_drafts(target)
    return f", for example {drafts[0]}" if drafts else ""


def known_drafts(target: Model) -> tuple[str, ...]:
    """Hub ids of small models of the target's family, smallest first."""
    named_ids = target.tokenizer.vocabulary.end if target.tokenizer else target.width
    rows = [r for r in _families() if target.checkpoint.model_type in r["model_types"] and named_ids == r["named_ids"]]
    most = target.checkpoint.parameters * MOST_OF_TARGET
    return tuple(draft["id"] for row in rows for draft in row["drafts"] if draft["parameters"] <= most)


@cache
def _families() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["families"])
