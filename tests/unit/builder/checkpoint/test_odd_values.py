"""Files that somebody else wrote may hold anything: a refusal or a finding, never a crash."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from builder.checkpoint import read_checkpoint
from builder.checkpoint.tokenizer import read_tokenizer
from builder.errors import Finding, RefusedError

ODD = (
    None,
    -1,
    3,
    2**70,
    float("nan"),
    float("inf"),
    1e308,
    int("9" * 4000),
    "9" * 5000,
    True,
    "",
    "4",
    [],
    ["a"],
    {"a": 1},
    {"rope_type": "yarn"},
    [{}],
)
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


DEEP = '{"a": ' * 100_000
HUGE = '{"a": ' + "9" * 5000 + "}"
BROKEN = pytest.mark.parametrize("text", [DEEP, HUGE, "[" * 100_000, "{", "\udcff"], ids=["deep", "huge", "list", "open", "no UTF-8"])


def write_text(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogateescape"))


@BROKEN
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("config.json", "CKPT-CONFIG"),
        ("model.safetensors.index.json", "CKPT-WEIGHTS"),
        ("hf_quant_config.json", "CKPT-SMALL-FILE"),
        ("quant_cfg.json", "CKPT-SMALL-FILE"),
        ("generation_config.json", "CKPT-SMALL-FILE"),
    ],
)
def test_a_file_that_is_no_json(write_checkpoint: Callable[..., Path], name: str, code: str, text: str) -> None:
    folder = write_checkpoint("target")
    write_text(folder / name, text)
    findings = found_in(folder)
    assert [(f.code, f.field) for f in findings] == [(code, "target.checkpoint")]
    assert findings[0].severity == ("warning" if name == "generation_config.json" else "error")
    assert name in findings[0].message


def found_in(folder: Path) -> Sequence[Finding]:
    try:
        return read_checkpoint(folder, "target.checkpoint").findings
    except RefusedError as error:
        return error.findings


@BROKEN
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_tokenizer_files_that_are_no_json(write_checkpoint: Callable[..., Path], name: str, text: str) -> None:
    folder = write_checkpoint("target")
    write_text(folder / name, text)
    with pytest.raises(RefusedError, match=name) as caught:
        read_tokenizer(folder)
    assert caught.value.finding.code == "CKPT-TOKENIZER"


def test_words_for_a_broken_file(write_checkpoint: Callable[..., Path]) -> None:
    folder = write_checkpoint("target")
    write_text(folder / "hf_quant_config.json", DEEP)
    (finding,) = found_in(folder)
    assert finding.message == (
        "hf_quant_config.json cannot be read (its values are nested too deeply): how the weights are stored is not known."
    )
    assert finding.fix == "fetch hf_quant_config.json again"


@BROKEN
def test_a_header_that_is_no_json(write_checkpoint: Callable[..., Path], text: str) -> None:
    folder = write_checkpoint("target")
    header = text.encode("utf-8", "surrogateescape")
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert [f.code for f in found_in(folder)] == ["CKPT-WEIGHTS"]


@pytest.mark.parametrize("count", ["99999999", "10001", "9" * 200], ids=str)
def test_the_count_in_a_shard_s_name_is_bounded(write_checkpoint: Callable[..., Path], count: str) -> None:
    folder = write_checkpoint("target")
    (folder / "model.safetensors").rename(folder / f"model-00001-of-{count}.safetensors")
    with pytest.raises(RefusedError, match="no model has more than 10000") as caught:
        read_checkpoint(folder, "x")
    assert caught.value.finding.code == "CKPT-WEIGHTS"


@pytest.mark.parametrize("factor", [float("inf"), float("nan"), 1e308, -1, 0, "4", 10**400], ids=lambda v: str(v)[:9])
def test_a_rope_factor_that_is_none(write_checkpoint: Callable[..., Path], factor: object) -> None:
    scaling = {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 10**18}
    checkpoint = read_checkpoint(write_checkpoint("target", rope_scaling=scaling), "x")
    assert [f.code for f in checkpoint.findings] == ["CKPT-ROPE"]
    assert "which is no factor" in checkpoint.findings[0].message
    assert checkpoint.max_positions == 4096


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
