"""Drafts that a refusal may name."""

from collections.abc import Callable

import pytest

from builder.checkpoint import Checkpoint
from builder.planner.checks.models import Model
from builder.planner.checks.small_models import known_drafts, suggestion

MakeCheckpoint = Callable[..., Checkpoint]


def model(checkpoint: Checkpoint) -> Model:
    return Model("target", "target", checkpoint, None, 1)


@pytest.mark.parametrize(
    ("model_type", "width", "parameters", "drafts"),
    [
        ("llama", 128_256, 70_000_000_000, ("meta-llama/Llama-3.2-1B-Instruct", "meta-llama/Llama-3.2-3B-Instruct")),
        ("llama", 128_256, 8_000_000_000, ("meta-llama/Llama-3.2-1B-Instruct",)),
        ("llama", 128_256, 1_000_000_000, ()),
        ("qwen2", 128_256, 70_000_000_000, ()),
        ("llama", 100, 70_000_000_000, ()),
    ],
)
def test_smaller_models_of_the_family(
    checkpoint: MakeCheckpoint, model_type: str, width: int, parameters: int, drafts: tuple[str, ...]
) -> None:
    target = model(checkpoint("target", model_type=model_type, width=width, parameters=parameters))
    assert known_drafts(target) == drafts
    assert suggestion(target) == (f", for example {drafts[0]}" if drafts else "")
