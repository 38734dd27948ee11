"""TensorRT-LLM's own folders: converted checkpoints and built engines, in the form of its 1.x releases."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builder.checkpoint import Checkpoint, read_checkpoint
from builder.errors import Finding, RefusedError
from tests.unit.builder.checkpoint.conftest import write_contents

LAYERS, HIDDEN, INNER, VOCABULARY, HEADS, KV_HEADS = 2, 32, 64, 96, 4, 2
HEAD = HIDDEN // HEADS
PARAMETERS = (
    2 * VOCABULARY * HIDDEN + LAYERS * (2 * HIDDEN * HIDDEN + 2 * KV_HEADS * HEAD * HIDDEN + 3 * HIDDEN * INNER + 2 * HIDDEN) + HIDDEN
)


def config(tensor_parallel: int = 1, pipeline_parallel: int = 1, **quantization: object) -> dict[str, Any]:
    return {
        "architecture": "LlamaForCausalLM",
        "dtype": "bfloat16",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_size": HEAD,
        "intermediate_size": INNER,
        "max_position_embeddings": 131072,
        "rotary_base": 500000.0,
        "rotary_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        "mapping": {"world_size": tensor_parallel * pipeline_parallel, "tp_size": tensor_parallel, "pp_size": pipeline_parallel},
        "quantization": {"quant_algo": None, "kv_cache_quant_algo": None, **quantization},
    }


def write_converted(folder: Path, values: dict[str, Any], scales: Sequence[float] = ()) -> Path:
    """A converted checkpoint of all ranks, split as the mapping says; layers are counted anew in each pipeline stage."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(values))
    width, depth = values["mapping"]["tp_size"], values["mapping"]["pp_size"]
    for rank in range(width * depth):
        shapes: dict[str, tuple[int, ...]] = {}
        if rank // width == 0:
            shapes["transformer.vocab_embedding.weight"] = (VOCABULARY, HIDDEN)
        if rank // width == depth - 1:
            shapes |= {"transformer.ln_f.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY // width, HIDDEN)}
        for layer in range(LAYERS // depth):
            name = f"transformer.layers.{layer}"
            shapes |= {
                f"{name}.attention.qkv.weight": ((HIDDEN + 2 * KV_HEADS * HEAD) // width, HIDDEN),
                f"{name}.attention.dense.weight": (HIDDEN, HIDDEN // width),
                f"{name}.mlp.fc.weight": (INNER // width, HIDDEN),
                f"{name}.mlp.gate.weight": (INNER // width, HIDDEN),
                f"{name}.mlp.proj.weight": (HIDDEN, INNER // width),
                f"{name}.input_layernorm.weight": (HIDDEN,),
                f"{name}.post_layernorm.weight": (HIDDEN,),
            }
        contents = {key: ("BF16", shape, bytes(2 * shape[0] * (shape[1] if len(shape) > 1 else 1))) for key, shape in shapes.items()}
        for layer, scale in enumerate(scales):
            contents[f"transformer.layers.{layer}.attention.kv_cache_scaling_factor"] = ("F32", (1,), struct.pack("<f", scale))
        write_contents(folder / f"rank{rank}.safetensors", contents)
    return folder


def read(folder: Path) -> Checkpoint:
    return read_checkpoint(folder, "target.checkpoint")


def only(folder: Path) -> Finding:
    (finding,) = read(folder).findings
    return finding


@pytest.mark.parametrize(("width", "depth"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_converted_checkpoint(tmp_path: Path, width: int, depth: int) -> None:
    checkpoint = read(write_converted(tmp_path / "model", config(width, depth)))
    assert checkpoint.findings == ()
    stored = checkpoint.stored
    assert (stored.kind, stored.weights, stored.tensor_parallel, stored.pipeline_parallel) == ("tensorrt_llm", "", width, depth)
    assert (checkpoint.parameters, checkpoint.shape.embedding_parameters) == (PARAMETERS, VOCABULARY * HIDDEN)
    assert checkpoint.shape.active_parameters == PARAMETERS - VOCABULARY * HIDDEN
    assert (checkpoint.layers, checkpoint.kv_heads, checkpoint.head_dim, checkpoint.max_positions) == (LAYERS, KV_HEADS, HEAD, 131072)
    assert checkpoint.rope is not None
    assert (checkpoint.rope.kind, checkpoint.rope.theta, len(checkpoint.rope.fields)) == ("llama3", 500000.0, 4)


def test_missing_rank_is_named(tmp_path: Path) -> None:
    folder = write_converted(tmp_path / "model", config(2))
    (folder / "rank1.safetensors").unlink()
    assert (only(folder).code, only(folder).severity) == ("CKPT-RANK-MISSING", "error")
    assert only(folder).message == (
        "config.json is made for 2 ranks (tensor parallel 2, pipeline parallel 1) and rank1.safetensors is not there: "
        "1 of 2 files are present."
    )
    assert read(folder).parameters == PARAMETERS


@pytest.mark.parametrize(
    ("changes", "codes"),
    [({}, []), ({"rotary_base": None}, ["CKPT-ROPE-BASE"]), ({"rotary_base": None, "position_embedding_type": "learned_absolute"}, [])],
    ids=str,
)
def test_rotary_base_is_not_guessed(tmp_path: Path, changes: dict[str, object], codes: list[str]) -> None:
    checkpoint = read(write_converted(tmp_path / "model", config() | changes))
    assert [finding.code for finding in checkpoint.findings] == codes
    if codes:
        assert checkpoint.findings[0].message == (
            "config.json of the converted checkpoint names no rotary_base, so TensorRT-LLM takes 10000; "
            "a model that was trained with another base answers nonsense without an error."
        )


def test_rank_cut_short(tmp_path: Path) -> None:
    folder = write_converted(tmp_path / "model", config())
    with (folder / "rank0.safetensors").open("r+b") as stream:
        stream.truncate(1000)
    assert only(folder).code == "CKPT-WEIGHTS"


@pytest.mark.parametrize(
    ("scales", "cache", "state", "findings"),
    [
        ((0.02, 0.03), "FP8", "good", []),
        ((1.0, 1.0), "FP8", "all_one", [("CKPT-KV-SCALES-ONE", "warning")]),
        ((1.0, 1.0), "INT8", "all_one", [("CKPT-KV-SCALES-ONE", "error")]),
        ((0.079, 0.0), "INT8", "zero", [("CKPT-KV-SCALES-ZERO", "error")]),
        ((0.02,), "FP8", "good", [("CKPT-KV-SCALES-MISSING", "error")]),
        ((), "FP8", "absent", [("CKPT-KV-SCALES-ABSENT", "error")]),
        ((), None, "", []),
    ],
    ids=str,
)
def test_scales_of_the_cache(
    tmp_path: Path, scales: Sequence[float], cache: str | None, state: str, findings: list[tuple[str, str]]
) -> None:
    values = config(quant_algo="FP8", kv_cache_quant_algo=cache)
    checkpoint = read(write_converted(tmp_path / "model", values, scales))
    assert (checkpoint.stored.weights, checkpoint.stored.kv_cache, checkpoint.stored.kv_scales) == ("FP8", cache or "", state)
    assert [(f.code, f.severity) for f in checkpoint.findings] == findings


def write_engine(folder: Path, ranks: int = 1, **build: object) -> Path:
    folder.mkdir()
    record = {"version": "1.2.1", "pretrained_config": config(ranks, kv_cache_quant_algo="FP8", quant_algo="FP8"), "build_config": build}
    (folder / "config.json").write_text(json.dumps(record))
    for rank in range(ranks):
        (folder / f"rank{rank}.engine").write_bytes(b"engine")
    return folder


def test_engine(tmp_path: Path) -> None:
    folder = write_engine(tmp_path / "engine", 2, max_batch_size=8, max_seq_len=4096, speculative_decoding_mode=2, max_draft_len=10)
    checkpoint = read(folder)
    stored = checkpoint.stored
    assert checkpoint.findings == ()
    assert (stored.kind, stored.release, stored.weights, stored.kv_cache, stored.kv_scales) == (
        "tensorrt_llm_engine",
        "1.2.1",
        "FP8",
        "FP8",
        "",
    )
    assert stored.tensor_parallel == 2
    assert {k: stored.details[k] for k in ("max_draft_tokens", "max_batch_size", "max_seq_len", "speculative_decoding_mode")} == {
        "max_draft_tokens": "10",
        "max_batch_size": "8",
        "max_seq_len": "4096",
        "speculative_decoding_mode": "draft_tokens_external",
    }
    assert checkpoint.parameters == PARAMETERS, "by formula: an engine has no headers"


@pytest.mark.parametrize(
    ("build", "tokens"),
    [
        ({"max_draft_len": 10}, "0"),
        ({"speculative_decoding_mode": 1, "max_draft_len": 10}, "0"),
        ({"speculative_decoding_mode": 4, "max_draft_len": 10}, "0"),
        ({"speculative_decoding_mode": "SpeculativeDecodingMode.DRAFT_TOKENS_EXTERNAL", "max_draft_len": 10}, "10"),
        ({}, "0"),
    ],
    ids=str,
)
def test_engine_without_the_mode_takes_no_drafts(tmp_path: Path, build: dict[str, object], tokens: str) -> None:
    assert read(write_engine(tmp_path / "engine", **build)).stored.details["max_draft_tokens"] == tokens


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        ({"plugin_config": []}, "The engine's config.json has build_config.plugin_config [], and TensorRT-LLM writes an object there."),
        (
            {"max_draft_len": "x"},
            "The engine's config.json has build_config.max_draft_len 'x', and TensorRT-LLM writes a whole number there.",
        ),
        (
            {"max_seq_len": True},
            "The engine's config.json has build_config.max_seq_len True, and TensorRT-LLM writes a whole number there.",
        ),
    ],
    ids=str,
)
def test_an_engine_s_record_of_another_kind(tmp_path: Path, build: dict[str, object], sentence: str) -> None:
    finding = only(write_engine(tmp_path / "engine", speculative_decoding_mode=2, **build))
    assert (finding.code, finding.severity, finding.message) == ("CKPT-ENGINE-RECORD", "error", sentence)
    assert finding.fix == "copy config.json of the engine again, or build it again"
    whole = {"plugin_config": {}, "max_draft_len": 10, "max_seq_len": None, "speculative_decoding_mode": 2}
    assert read(write_engine(tmp_path / "whole", **whole)).findings == ()


def test_missing_engine_of_a_rank(tmp_path: Path) -> None:
    folder = write_engine(tmp_path / "engine", 4)
    (folder / "rank1.engine").unlink()
    (folder / "rank3.engine").unlink()
    assert only(folder).message == (
        "config.json is made for 4 ranks (tensor parallel 4, pipeline parallel 1) and rank1.engine, rank3.engine are not there: "
        "2 of 4 files are present."
    )


def test_record_without_sizes(tmp_path: Path) -> None:
    folder = write_engine(tmp_path / "engine")
    (folder / "config.json").write_text(json.dumps({"pretrained_config": {}, "build_config": {}}))
    with pytest.raises(RefusedError, match="no usable num_attention_heads"):
        read(folder)
