"""Names that were probably meant."""

from pathlib import Path

import pytest

from builder.checkpoint.nearest import nearest, nearest_sibling


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name in ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.2-1B-Instruct", "Qwen/Qwen3-1.7B", ".cache/Llama-3.3-70B"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "Qwen" / "Qwen3-32B").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("meta-llama/Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct"),
        ("llama-3.2-1b", "meta-llama/Llama-3.2-1B-Instruct"),
        ("qwen/qwen3-1.7b", "Qwen/Qwen3-1.7B"),
        ("Qwen/Qwen3-1.7", "Qwen/Qwen3-1.7B"),
        ("acme/tiny", ""),
        ("", ""),
    ],
)
def test_models_by_name(models: Path, name: str, expected: str) -> None:
    assert nearest(name, models) == expected


def test_a_folder_of_models_that_is_not_there(tmp_path: Path) -> None:
    assert nearest("acme/tiny", tmp_path / "none") == ""


def test_the_folder_beside(models: Path) -> None:
    assert nearest_sibling(models / "meta-llama" / "Llama-3.3-70B-instruct") == "Llama-3.3-70B-Instruct"
    assert nearest_sibling(models / "mistral" / "Llama-3.3-70B") == ""
    assert nearest_sibling(models / "zzz") == ""
