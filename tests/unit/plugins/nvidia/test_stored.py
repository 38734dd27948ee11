"""What a checkpoint folder says of its own quantization."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.nvidia.stored import stored_kv_cache, stored_weights


@pytest.mark.parametrize(
    ("file", "content", "found"),
    [
        ("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}, ("nvfp4", "fp8")),
        ("config.json", {"quantization": {"quant_algo": "W4A16_AWQ", "kv_cache_quant_algo": None}}, ("int4_awq", "")),
        ("config.json", {"quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "NVFP4"}}, ("fp8", "nvfp4")),
        ("config.json", {"hidden_size": 8}, ("none", "")),
        ("config.json", {"quantization": {"quant_algo": "MIXED_PRECISION"}}, ("none", "")),
        ("config.json", [], ("none", "")),
    ],
)
def test_words_of_the_pair_file(tmp_path: Path, file: str, content: Any, found: tuple[str, str]) -> None:
    (tmp_path / file).write_text(json.dumps(content))
    assert (stored_weights(tmp_path), stored_kv_cache(tmp_path)) == found


def test_modelopts_file_comes_before_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}))
    assert stored_weights(tmp_path) == "nvfp4"


def test_a_folder_without_files_is_not_quantized(tmp_path: Path) -> None:
    assert (stored_weights(tmp_path), stored_kv_cache(tmp_path)) == ("none", "")
