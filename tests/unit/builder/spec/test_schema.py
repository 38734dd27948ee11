"""The shipped JSON Schema and pair files stay in step with the model."""

from pathlib import Path

import pytest

from builder.spec import load_pair
from builder.spec.schema import json_schema, schema_text

ROOT = Path(__file__).parents[4]
PAIRS = sorted((ROOT / "configs" / "pairs").glob("*.yaml"))


def test_schema_file_is_fresh() -> None:
    assert (ROOT / "configs" / "schema.json").read_text() == schema_text(), "run: make schema"


def test_schema_refuses_unknown_keys() -> None:
    schema = json_schema()
    assert schema["additionalProperties"] is False
    assert all(d["additionalProperties"] is False for d in schema["$defs"].values())


@pytest.mark.parametrize("file", PAIRS, ids=lambda f: f.stem)
def test_shipped_pair_files_are_accepted_and_name_the_schema(file: Path) -> None:
    assert load_pair(file).spec.name == file.stem
    assert file.read_text().startswith("# yaml-language-server: $schema=../schema.json\n")
