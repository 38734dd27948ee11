"""Quantized checkpoints: their words, their packed weights, and the scales of their KV cache."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builder.checkpoint import Checkpoint, read_checkpoint
from builder.checkpoint.quantization import read_format
from builder.errors import Finding
from tests.conftest import llama_shapes
from tests.unit.builder.checkpoint.conftest import write_contents

Write = Callable[..., Path]
WIDTH = {"BF16": 2, "F16": 2, "F32": 4, "I32": 4, "U8": 1, "I8": 1, "F8_E4M3": 1}
Stored = dict[str, tuple[str, tuple[int, ...]]]


def group(**weights: object) -> dict[str, Any]:
    inputs = weights.pop("inputs", None)
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights, "input_activations": inputs}}}


FP8 = {"num_bits": 8, "type": "float"}


@pytest.mark.parametrize(
    ("section", "weights", "kv_cache"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "W4A16_GPTQ", ""),
        ({"quant_method": "gptq", "bits": 8}, "W8A16_GPTQ", ""),
        ({"quant_method": "awq", "bits": 4}, "W4A16_AWQ", ""),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "FP8_BLOCK_SCALES", ""),
        ({"quant_method": "fp8", "activation_scheme": "static", "kv_cache_scheme": "FP8"}, "FP8", "FP8"),
        ({"quant_method": "fbgemm_fp8"}, "FP8_PER_CHANNEL_PER_TOKEN", ""),
        ({"quant_method": "mxfp4"}, "W4A16_MXFP4", ""),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "BITSANDBYTES_4BIT", ""),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "BITSANDBYTES_8BIT", ""),
        ({"quant_method": "some-thing"}, "SOME_THING", ""),
        (group(**FP8, strategy="tensor", inputs=FP8) | {"kv_cache_scheme": FP8}, "FP8", "FP8"),
        (group(**FP8, strategy="channel", inputs=FP8), "FP8_PER_CHANNEL_PER_TOKEN", ""),
        (group(**FP8, strategy="block", inputs=FP8), "FP8_BLOCK_SCALES", ""),
        (group(num_bits=4, type="float", inputs={"num_bits": 4}), "NVFP4", ""),
        (group(num_bits=4, type="float"), "W4A16_NVFP4", ""),
        (group(num_bits=4, type="int"), "W4A16", ""),
        (group(num_bits=8, type="int", inputs={"num_bits": 8}), "W8A8_SQ_PER_CHANNEL", ""),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": "NVFP4"}, "NVFP4", "NVFP4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_scheme": FP8}, "FP8", "FP8"),
    ],
    ids=str,
)
def test_words_of_a_quantization_section(tmp_path: Path, section: dict[str, Any], weights: str, kv_cache: str) -> None:
    stored = read_format(tmp_path, {"model_type": "llama", "quantization_config": section})
    assert (stored.weights, stored.kv_cache) == (weights, kv_cache)
    assert stored.kind == ("modelopt" if section.get("quant_method") == "modelopt" else "huggingface")
    nested = read_format(tmp_path, {"model_type": "mistral3", "text_config": {"quantization_config": section}})
    assert nested == stored


def test_unquantized(tmp_path: Path) -> None:
    assert read_format(tmp_path, {"model_type": "llama"}).weights == ""


def modelopt(folder: Path, **quantization: object) -> None:
    producer = {"name": "modelopt", "version": "0.47.0"}
    (folder / "hf_quant_config.json").write_text(json.dumps({"producer": producer, "quantization": quantization}))


def test_modelopt_export(tmp_path: Path) -> None:
    modelopt(tmp_path, quant_algo="NVFP4", kv_cache_quant_algo="FP8", group_size=16)
    stored = read_format(tmp_path, {"model_type": "llama"})
    assert (stored.kind, stored.weights, stored.kv_cache) == ("modelopt", "NVFP4", "FP8")
    assert stored.details == {"producer": "modelopt 0.47.0", "group_size": "16"}


def test_mixed_precision_names_the_algorithms_of_its_layers(tmp_path: Path) -> None:
    modelopt(tmp_path, quant_algo="MIXED_PRECISION", kv_cache_quant_algo="FP8")
    layers = {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "NVFP4"}}
    (tmp_path / "quant_cfg.json").write_text(json.dumps({"kv_cache_quant_algo": "FP8", "quantized_layers": layers}))
    assert read_format(tmp_path, {}).details["layers"] == "FP8, NVFP4"


def only(folder: Path) -> Finding:
    (finding,) = read_checkpoint(folder, "target.checkpoint").findings
    return finding


def test_files_that_disagree_are_refused(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    modelopt(folder, quant_algo="MIXED_PRECISION", kv_cache_quant_algo=None)
    layers = folder / "quant_cfg.json"
    layers.write_text(json.dumps({"kv_cache_quant_algo": None, "quantized_layers": {}}))
    assert read_checkpoint(folder, "x").findings == ()
    layers.write_text(json.dumps({"kv_cache_quant_algo": "FP8", "quantized_layers": {}}))
    assert (only(folder).code, only(folder).severity) == ("CKPT-QUANT-DISAGREES", "error")
    assert only(folder).message == (
        "The checkpoint's files disagree on its quantization (hf_quant_config.json: weights MIXED_PRECISION, cache none; "
        "quant_cfg.json: weights MIXED_PRECISION, cache FP8); TensorRT-LLM stops at this."
    )


def quantized(folder: Path, section: dict[str, Any], pack: Callable[[str, tuple[int, ...]], Stored]) -> Checkpoint:
    """The checkpoint with every matrix of its layers stored as `pack` says."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": section}))
    stored: Stored = {}
    for name, shape in llama_shapes(config).items():
        stem = name.removesuffix(".weight")
        stored |= pack(stem, shape) if len(shape) == 2 and ".layers." in name else {name: ("BF16", shape)}
    contents = {name: (dtype, shape, bytes(WIDTH[dtype] * math.prod(shape))) for name, (dtype, shape) in stored.items()}
    write_contents(folder / "model.safetensors", contents)
    return read_checkpoint(folder, "x")


def awq(stem: str, shape: tuple[int, ...]) -> Stored:
    rows, columns = shape
    return {
        f"{stem}.qweight": ("I32", (columns, rows // 8)),
        f"{stem}.qzeros": ("I32", (columns // 16, rows // 8)),
        f"{stem}.scales": ("F16", (columns // 16, rows)),
    }


def gptq(stem: str, shape: tuple[int, ...]) -> Stored:
    rows, columns = shape
    return {
        f"{stem}.qweight": ("I32", (columns // 4, rows)),
        f"{stem}.g_idx": ("I32", (columns,)),
        f"{stem}.scales": ("F16", (columns // 16, rows)),
    }


def nvfp4(stem: str, shape: tuple[int, ...]) -> Stored:
    rows, columns = shape
    return {
        f"{stem}.weight": ("U8", (rows, columns // 2)),
        f"{stem}.weight_scale": ("F8_E4M3", (rows, columns // 16)),
        f"{stem}.weight_scale_2": ("F32", ()),
        f"{stem}.input_scale": ("F32", ()),
    }


def packed(stem: str, shape: tuple[int, ...]) -> Stored:
    rows, columns = shape
    return {
        f"{stem}.weight_packed": ("I32", (rows, columns // 8)),
        f"{stem}.weight_scale": ("BF16", (rows, columns // 16)),
        f"{stem}.weight_shape": ("I32", (2,)),
    }


def fp8(stem: str, shape: tuple[int, ...]) -> Stored:
    return {f"{stem}.weight": ("F8_E4M3", shape), f"{stem}.weight_scale_inv": ("F32", (1, 1))}


def nf4(stem: str, shape: tuple[int, ...]) -> Stored:
    return {
        f"{stem}.weight": ("U8", (math.prod(shape) // 2, 1)),
        f"{stem}.weight.absmax": ("U8", (4,)),
        f"{stem}.weight.quant_map": ("F32", (16,)),
        f"{stem}.weight.quant_state.bitsandbytes__nf4": ("U8", (80,)),
    }


@pytest.mark.parametrize(
    ("section", "pack"),
    [
        ({"quant_method": "awq", "bits": 4}, awq),
        ({"quant_method": "gptq", "bits": 8}, gptq),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, nvfp4),
        (group(num_bits=4, type="int"), packed),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, fp8),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, nf4),
    ],
    ids=["awq", "gptq", "nvfp4", "compressed-tensors", "fp8", "bitsandbytes"],
)
def test_packed_weights_count_as_what_they_stand_for(
    write_checkpoint: Write, section: dict[str, Any], pack: Callable[[str, tuple[int, ...]], Stored]
) -> None:
    plain = read_checkpoint(write_checkpoint("plain"), "x").shape
    checkpoint = quantized(write_checkpoint("target"), section, pack)
    assert (checkpoint.findings, checkpoint.shape) == ((), plain)


GOOD = (0.0225, 0.0013, 0.03, 0.002, 0.04, 0.001, 0.05, 0.002)


@pytest.mark.parametrize(
    ("scales", "cache", "state", "findings"),
    [
        (GOOD, "FP8", "good", []),
        (GOOD, "NVFP4", "good", []),
        ((1.0,) * 8, "FP8", "all_one", [("CKPT-KV-SCALES-ONE", "warning")]),
        ((1.0,) * 8, "INT8", "all_one", [("CKPT-KV-SCALES-ONE", "error")]),
        ((1.0,) * 7 + (0.5,), "INT8", "good", []),
        ((0.0, *GOOD[1:]), "FP8", "zero", [("CKPT-KV-SCALES-ZERO", "error")]),
        ((math.nan, *GOOD[1:]), "FP8", "nan", [("CKPT-KV-SCALES-NAN", "error")]),
        ((math.inf, 0.0, *GOOD[2:]), "FP8", "nan", [("CKPT-KV-SCALES-NAN", "error"), ("CKPT-KV-SCALES-ZERO", "error")]),
        ((), "FP8", "absent", [("CKPT-KV-SCALES-ABSENT", "warning")]),
        ((), "INT8", "absent", [("CKPT-KV-SCALES-ABSENT", "error")]),
        (GOOD[:4], "FP8", "good", [("CKPT-KV-SCALES-MISSING", "warning")]),
        (GOOD[:4], "INT8", "good", [("CKPT-KV-SCALES-MISSING", "error")]),
        ((), None, "", []),
    ],
    ids=str,
)
def test_states_of_the_cache_scales(
    write_checkpoint: Write, write_scales: Write, scales: tuple[float, ...], cache: str, state: str, findings: list[tuple[str, str]]
) -> None:
    checkpoint = read_checkpoint(write_scales(write_checkpoint("target"), scales, cache=cache), "target.checkpoint")
    assert checkpoint.stored.kv_scales == state
    assert [(f.code, f.severity) for f in checkpoint.findings] == findings


@pytest.mark.parametrize(
    ("scales", "cache", "message"),
    [
        (
            (1.0,) * 8,
            "INT8",
            "All 8 stored KV cache scales are exactly 1.0: INT8 with a scale of 1.0 rounds keys and values to whole numbers.",
        ),
        (
            (1.0,) * 8,
            "FP8",
            "All 8 stored KV cache scales are exactly 1.0: either nothing was calibrated or the export raised smaller scales to 1.0, "
            "and small keys and values lose precision.",
        ),
        (
            (*GOOD[:3], 0.0, *GOOD[4:]),
            "FP8",
            "1 of 8 stored KV cache scales are zero or below; the first is model.layers.1.self_attn.v_proj.v_scale: "
            "every key and value would be divided by it.",
        ),
        (
            (*GOOD[:3], math.nan, *GOOD[4:]),
            "FP8",
            "1 of 8 stored KV cache scales are not a finite number; the first is model.layers.1.self_attn.v_proj.v_scale: "
            "every key and value of the layer would be lost.",
        ),
        ((), "FP8", "The checkpoint says that its KV cache is FP8 and stores no scale for it: the runtime will take 1.0."),
        ((), "INT8", "The checkpoint says that its KV cache is INT8 and stores no scale for it: the engine cannot be built."),
        (
            GOOD[:4],
            "FP8",
            "2 of 4 layers have no scale for their FP8 KV cache; the first is layer 2. "
            "The others have one, so the export was not complete.",
        ),
    ],
    ids=str,
)
def test_sentences_about_the_cache_scales(
    write_checkpoint: Write, write_scales: Write, scales: tuple[float, ...], cache: str, message: str
) -> None:
    assert only(write_scales(write_checkpoint("target"), scales, cache=cache)).message == message
