"""Rotary position embeddings, in every spelling that config.json has had for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rope:
    """`kind` is transformers' `rope_type`; `theta` the base; `fields` every other number of the kind, by transformers' names."""

    kind: str = "default"
    theta: float = 10_000.0
    fields: Mapping[str, object] = field(default_factory=dict)
