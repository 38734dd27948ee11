"""Stored tensors against the configuration: layers, shapes, rows of the embedding, output layer, dtypes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.checkpoint import Checkpoint, read_checkpoint
from builder.errors import Finding
from tests.conftest import llama_shapes, write_safetensors
from tests.unit.builder.checkpoint.conftest import write_contents

Write = Callable[..., Path]
Shapes = dict[str, tuple[int, ...]]
UP = "model.layers.2.mlp.up_proj.weight"
ROW = 2 * 64 * 32
"""Bytes of an embedding of 64 rows."""


def rewrite(folder: Path, change: Callable[[Shapes], Shapes]) -> Checkpoint:
    shapes = llama_shapes(json.loads((folder / "config.json").read_text()))
    write_safetensors(folder / "model.safetensors", change(shapes))
    return read_checkpoint(folder, "target.checkpoint")


def only(checkpoint: Checkpoint) -> Finding:
    (finding,) = checkpoint.findings
    return finding


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
def test_missing_tensor_of_a_layer(write_checkpoint: Write, family: str) -> None:
    assert read_checkpoint(write_checkpoint("target", model_type=family, head_dim=8), "x").findings == ()
    finding = only(rewrite(write_checkpoint("broken", model_type=family, head_dim=8), lambda s: {k: v for k, v in s.items() if k != UP}))
    assert (finding.code, finding.severity, finding.needed) == ("CKPT-TENSOR-MISSING", "error", UP)
    assert finding.message == f"1 of the 37 tensors that config.json's 4 layers need are not stored; the first is {UP}."


def test_other_shape_than_the_sizes_make(write_checkpoint: Write) -> None:
    key = "model.layers.0.self_attn.k_proj.weight"
    finding = only(rewrite(write_checkpoint("target"), lambda s: s | {key: (8, 32), UP: (65, 32)}))
    assert finding.code == "CKPT-SHAPE"
    assert finding.message == (
        "2 stored tensors have other shapes than config.json's sizes make; "
        "the first is model.layers.0.self_attn.k_proj.weight, stored as [8, 32], expected [16, 32]."
    )


@pytest.mark.parametrize(
    ("rows", "reason"),
    [(66, "tokens were added without the configuration"), (62, "ids beyond the rows have no weights")],
)
def test_rows_of_the_embedding_against_vocab_size(write_checkpoint: Write, rows: int, reason: str) -> None:
    checkpoint = rewrite(write_checkpoint("target"), lambda s: s | {"model.embed_tokens.weight": (rows, 32)})
    assert only(checkpoint).code == "CKPT-VOCAB-ROWS"
    assert only(checkpoint).message == f"model.embed_tokens.weight has {rows} rows and config.json's vocab_size is 64: {reason}."
    assert (checkpoint.embedding_rows, checkpoint.vocab_size) == (rows, 64)


def test_more_layers_stored_than_counted(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target", layers=6)
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": 4}
    (folder / "config.json").write_text(json.dumps(config))
    checkpoint = read_checkpoint(folder, "x")
    assert (only(checkpoint).code, only(checkpoint).severity) == ("CKPT-LAYERS", "warning")
    assert only(checkpoint).message == "config.json counts 4 layers, tensors are stored for 6; the rest would be left out."
    assert checkpoint.parameters == read_checkpoint(write_checkpoint("four"), "x").parameters


def test_family_whose_names_are_not_listed_needs_some_tensor_in_each_layer(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target", model_type="newcomer")
    assert read_checkpoint(folder, "x").findings == ()
    finding = only(rewrite(folder, lambda s: {k: v for k, v in s.items() if ".layers.2." not in k}))
    assert finding.message == "config.json counts 4 layers and 1 of them have no tensor; the first is layer 2."


def test_experts_of_mixtral(write_checkpoint: Write) -> None:
    def experts(shapes: Shapes) -> Shapes:
        kept = {name: shape for name, shape in shapes.items() if ".mlp." not in name}
        for layer in range(4):
            moe = f"model.layers.{layer}.block_sparse_moe"
            kept[f"{moe}.gate.weight"] = (2, 32)
            for expert in range(2):
                kept |= {f"{moe}.experts.{expert}.{w}.weight": (32, 64) if w == "w2" else (64, 32) for w in ("w1", "w2", "w3")}
        return kept

    sizes = {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 1}
    whole = rewrite(write_checkpoint("target", **sizes), experts)
    assert whole.findings == ()
    assert whole.shape.experts == 2
    assert whole.parameters - whole.shape.active_parameters == 4 * 3 * 64 * 32
    gone = "model.layers.3.block_sparse_moe.experts.1.w2.weight"
    broken = rewrite(write_checkpoint("broken", **sizes), lambda s: {k: v for k, v in experts(s).items() if k != gone})
    assert only(broken).needed == gone


def test_tied_head_may_be_absent(write_checkpoint: Write) -> None:
    checkpoint = read_checkpoint(write_checkpoint("target"), "x")
    assert checkpoint.shape.tied_head
    assert checkpoint.shape.active_parameters == checkpoint.parameters
    assert checkpoint.shape.embedding_parameters == 64 * 32


def test_untied_head_counts_apart(write_checkpoint: Write) -> None:
    checkpoint = read_checkpoint(write_checkpoint("target", tie_word_embeddings=False), "x")
    assert (checkpoint.findings, checkpoint.shape.tied_head) == ((), False)
    assert checkpoint.shape.active_parameters == checkpoint.parameters - 64 * 32


def test_head_absent_and_not_tied_is_refused(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target", tie_word_embeddings=False)
    finding = only(rewrite(folder, lambda s: {k: v for k, v in s.items() if k != "lm_head.weight"}))
    assert (finding.code, finding.severity) == ("CKPT-HEAD-MISSING", "error")
    assert finding.message == (
        "No output layer (lm_head.weight) is stored and config.json does not tie it to the input embedding (tie_word_embeddings): "
        "a converter would take the embedding in its place without a word."
    )


@pytest.mark.parametrize("place", [None, 0, ROW - 1])
def test_tied_and_stored_twice_must_be_equal(write_checkpoint: Write, place: int | None) -> None:
    folder = write_checkpoint("target")
    content = bytearray(range(256)) * (ROW // 256)
    other = bytearray(content)
    if place is not None:
        other[place] ^= 1
    heads = {"model.embed_tokens.weight": ("BF16", (64, 32), bytes(content)), "lm_head.weight": ("BF16", (64, 32), bytes(other))}
    (folder / "model.safetensors").unlink()
    shapes = llama_shapes(json.loads((folder / "config.json").read_text()))
    del shapes["model.embed_tokens.weight"]
    write_safetensors(folder / "model-00001-of-00002.safetensors", shapes)
    write_contents(folder / "model-00002-of-00002.safetensors", heads)
    checkpoint = read_checkpoint(folder, "x")
    sentence = (
        "config.json ties the output layer to the input embedding, but lm_head.weight and model.embed_tokens.weight are stored with "
        "different contents: transformers and TensorRT-LLM would run two different models."
    )
    assert [(f.code, f.severity, f.message) for f in checkpoint.findings] == (
        [] if place is None else [("CKPT-HEAD-DIFFERS", "error", sentence)]
    )
    assert checkpoint.parameters == read_checkpoint(write_checkpoint("once"), "x").parameters


def test_mixed_dtypes_without_quantization(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target")
    shapes = llama_shapes(json.loads((folder / "config.json").read_text()))
    (folder / "model.safetensors").unlink()
    half = {name: shape for name, shape in shapes.items() if ".layers.0." in name}
    write_safetensors(folder / "model-00001-of-00002.safetensors", half, "F32", 4)
    write_safetensors(folder / "model-00002-of-00002.safetensors", {n: s for n, s in shapes.items() if n not in half})
    finding = only(read_checkpoint(folder, "x"))
    assert (finding.code, finding.severity) == ("CKPT-DTYPE-MIXED", "warning")
    assert finding.message == "The weight matrices are stored in several dtypes (22 BF16, 7 F32) and config.json names no quantization."


def test_language_model_of_a_model_of_several_media(write_checkpoint: Write) -> None:
    folder = write_checkpoint("target", tie_word_embeddings=False)
    text = json.loads((folder / "config.json").read_text())
    alone = read_checkpoint(folder, "x").shape
    (folder / "config.json").write_text(json.dumps({"model_type": "llava", "text_config": text}))
    shapes = llama_shapes(text, "language_model.model.")
    shapes["language_model.lm_head.weight"] = shapes.pop("lm_head.weight")
    write_safetensors(folder / "model.safetensors", shapes | {"vision_tower.layers.0.mlp.weight": (512, 512)})
    checkpoint = read_checkpoint(folder, "x")
    assert (checkpoint.findings, checkpoint.shape) == ((), alone)
