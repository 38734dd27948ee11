"""Drafts that a refusal may name."""

from collections.abc import Callable

import pytest

from builder.checkpoint import Checkpoint
from builder.checkpoint.tokenizer import read_tokenizer
from builder.planner.checks.models import Model
from builder.planner.checks.small_models import known_drafts, suggestion

MakeCheckpoint = Callable[..., Checkpoint]


def model(checkpoint: Checkpoint) -> Model:
    return Model("target", "target", checkpoint, None)


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


def weigh(checkpoint: Checkpoint, size_bytes: int) -> None:
    with (checkpoint.path / "model.safetensors").open("wb") as stream:
        stream.truncate(size_bytes)


@pytest.mark.parametrize(
    ("size_bytes", "words", "named"),
    [(250, {"a": 0}, True), (251, {"a": 0}, False), (0, {"a": 0}, False), (250, {"b": 0}, False), (250, {"ab": 0}, False)],
)
def test_a_folder_beside_the_target(checkpoint: MakeCheckpoint, size_bytes: int, words: dict[str, int], named: bool) -> None:
    """It must have the target's tokenizer and at most a quarter of its weights."""
    target, small = checkpoint("target", words={"a": 0}), checkpoint("small", words=words)
    weigh(target, 1000)
    weigh(small, size_bytes)
    found = suggestion(Model("target", "target", target, read_tokenizer(target.path)))
    assert found == (", for example small beside the target" if named else "")


def test_a_folder_that_cannot_be_listed_holds_no_suggestion(checkpoint: MakeCheckpoint) -> None:
    target = checkpoint("target")
    tokenizer = read_tokenizer(target.path)
    for file in target.path.iterdir():
        file.unlink()
    assert suggestion(Model("target", "target", target, tokenizer)) == ""
