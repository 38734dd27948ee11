"""Files that somebody else wrote may hold anything: a refusal or a finding, never a crash."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from builder.checkpoint import read_checkpoint
from builder.errors import RefusedError

ODD = (None, -1, 3, 2**70, float("nan"), True, "", "4", [], ["a"], {"a": 1}, {"rope_type": "yarn"}, [{}])
CONFIG = (
    "vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads max_position_embeddings head_dim "
    "tie_word_embeddings model_type text_config rope_scaling rope_parameters rope_theta rope_local_base_freq partial_rotary_factor "
    "original_max_position_embeddings quantization_config compression_config eos_token_id num_local_experts num_experts_per_tok "
    "moe_intermediate_size kv_lora_rank qk_rope_head_dim is_moe expansion_ratio multi_query architecture mapping quantization"
)
SECTION = "quant_method bits group_size config_groups kv_cache_scheme quant_algo weight_block_size producer quantized_layers load_in_4bit"
OTHER_FILES = ("generation_config.json", "hf_quant_config.json", "quant_cfg.json", "model.safetensors.index.json")


def odd_files() -> Iterator[tuple[str, object]]:
    """File and content; of config.json what changes."""
    for value in ODD:
        yield from (("config.json", {name: value}) for name in CONFIG.split())
        yield from (
            ("config.json", {"quantization_config": {"quant_method": "compressed-tensors", name: value}}) for name in SECTION.split()
        )
        yield from (("config.json", {"quantization_config": {"config_groups": {"g": {name: value}}}}) for name in ("weights", "format"))
        yield from (("config.json", {"rope_scaling": {name: value}}) for name in ("type", "factor", "rope_theta", "full_attention"))
        yield from ((file, value) for file in OTHER_FILES)
        yield "generation_config.json", {"eos_token_id": value}
        yield "model.safetensors.index.json", {"weight_map": value}
        yield "model.safetensors.index.json", {"weight_map": {"a": value}}
        for name in ("producer", "quantization"):
            yield "hf_quant_config.json", {"quantization": {"quant_algo": "MIXED_PRECISION", "quantized_layers": value}, name: value}


def test_no_value_crashes_the_reader(write_checkpoint: Callable[..., Path]) -> None:
    folder = write_checkpoint("target", layers=1)
    config = json.loads((folder / "config.json").read_text())
    for file, content in odd_files():
        (folder / file).write_text(json.dumps(config | content if file == "config.json" and isinstance(content, dict) else content))
        with suppress(RefusedError):
            assert read_checkpoint(folder, "x").facts.shape.layers > 0
        if file != "config.json":
            (folder / file).unlink()
        (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("value", [None, "../model.safetensors", "a/b.safetensors", "x" * 300, 3], ids=str)
def test_shards_are_files_of_the_folder(write_checkpoint: Callable[..., Path], value: object) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": value}}))
    with pytest.raises(RefusedError, match="is no file's name"):
        read_checkpoint(folder, "x")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": ["a"], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]},
        {"dtype": [], "shape": [1], "data_offsets": [0, None]},
    ],
    ids=str,
)
def test_odd_headers(write_checkpoint: Callable[..., Path], entry: dict[str, object]) -> None:
    folder = write_checkpoint("target")
    header = json.dumps({"a": entry}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(RefusedError) as caught:
        read_checkpoint(folder, "x")
    assert caught.value.finding.code == "CKPT-WEIGHTS"
