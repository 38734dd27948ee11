"""Generations and runs from few words."""

from collections.abc import Callable
from typing import Any

import pytest

from builder.gates.prompts import Prompt
from builder.gates.runs import PairRun
from builder.serving.generation import Generation

FIELDS: dict[str, Any] = {
    "text": "",
    "output_ids": (1, 2, 3, 4),
    "drafted": 0,
    "accepted": 0,
    "lookup_drafted": 0,
    "lookup_accepted": 0,
    "rounds": 4,
    "seconds": 1.0,
    "seconds_to_first_token": 0.1,
    "draft_s": 0.0,
    "target_s": 0.9,
}


def generation(**changed: Any) -> Generation:
    return Generation(**(FIELDS | changed))


@pytest.fixture(name="generation")
def generation_fixture() -> Callable[..., Generation]:
    return generation


@pytest.fixture
def pair() -> Callable[..., PairRun]:
    """`pair(id, kind, target={...}, speculative={...})`; the speculative side drafts 4, of which 2 are accepted."""

    def make(
        name: str = "p", kind: str = "chat", target: dict[str, Any] | None = None, speculative: dict[str, Any] | None = None
    ) -> PairRun:
        spec = {"drafted": 4, "accepted": 2, "rounds": 2} | (speculative or {})
        return PairRun(Prompt(name, kind, name), generation(**(target or {})), generation(**spec))

    return make
