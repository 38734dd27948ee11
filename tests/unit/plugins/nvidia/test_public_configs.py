"""From a public model's own config.json to its bytes: the reader and the formulas together agree with what is published."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.api import ModelShape
from builder.checkpoint.geometry import read_geometry
from builder.checkpoint.shape import shape_of
from plugins.nvidia.memory import kv_bytes_per_token

DATA = Path(__file__).parents[3] / "data"
ROWS: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "kv_bytes.yaml").read_text())["models"]
CONFIGS = {row: folder for row in ROWS for folder in (DATA / "models").glob(f"*/{row}*")}
# Billions of parameters on the model cards; dense attention only, of which the sizes alone tell the number.
PARAMETERS = {
    "Llama-3.1-8B": 8.03,
    "Llama-3.1-70B": 70.6,
    "Llama-3.1-405B": 406,
    "Llama-3.2-1B": 1.24,
    "Llama-3.2-3B": 3.21,
    "Qwen2.5-7B": 7.62,
    "Qwen2.5-72B": 72.7,
    "Qwen3-32B": 32.8,
    "Mixtral-8x7B": 46.7,
}


def shape(row: str) -> ModelShape:
    config = json.loads((CONFIGS[row] / "config.json").read_text())
    return shape_of(read_geometry(config), ())


@pytest.mark.parametrize("kv_cache", ["bf16", "fp8", "nvfp4"])
@pytest.mark.parametrize("row", CONFIGS)
def test_bytes_per_token_from_the_configuration(row: str, kv_cache: str) -> None:
    assert kv_bytes_per_token(shape(row), kv_cache) == ROWS[row][kv_cache] * 1024


def test_most_rows_have_a_configuration() -> None:
    assert len(CONFIGS) >= 11


@pytest.mark.parametrize("row", PARAMETERS)
def test_parameters_are_those_of_the_card(row: str) -> None:
    assert shape(row).parameters / 1e9 == pytest.approx(PARAMETERS[row], rel=0.005)
