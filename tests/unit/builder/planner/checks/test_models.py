"""How findings name the models."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from builder.checkpoint import Checkpoint
from builder.planner.checks.models import model_of
from builder.spec import load_pair


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("owner/name", "owner/name"),
        ("owner/name@main", "owner/name@main"),
        ("models/target", "models/target"),
        ("target", "target"),
        ("/data/models/target", "target"),
        ("../models/target/", "target"),
        ("~/target", "target"),
    ],
)
def test_a_hub_id_as_it_is_and_a_folder_by_its_last_part(
    checkpoint: Callable[..., Checkpoint], tmp_path: Path, written: str, name: str
) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(yaml.safe_dump({"name": "pair", "target": {"checkpoint": written}, "draft": {"method": "ngram"}}))
    assert str(model_of(load_pair(file), "target", checkpoint("target"), None)) == f"the target {name}"
