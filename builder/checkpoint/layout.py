"""Stored tensors against the configuration: is every layer there, in the shapes that its sizes make?"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

import yaml

from builder.checkpoint.families import LOADER
from builder.checkpoint.geometry import Geometry
from builder.checkpoint.names import EMBEDDINGS, embedding_of, is_head, layer_of, weights_in
from builder.checkpoint.safetensors import Tensor
from builder.errors import Finding

ENDINGS = (".weight", ".qweight", ".weight_packed")
"""How the weight of a layer may be called; only the first is stored in its own shape."""
PLAIN = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"})
"""Dtypes that store one weight in one number."""


MOST_NAMES_A_TENSOR = 4
"""Bound on the names that absurd sizes may ask for: with more names than tensors some are missing in any case."""


@cache
def _layouts() -> Sequence[Mapping[str, Any]]:
    text = files("builder.checkpoint").joinpath("layouts.yaml").read_text(encoding="utf-8")
    return tuple(yaml.load(text, LOADER)["layouts"].values())  # noqa: S506 - a safe loader, the quicker one where it is built


def check_layout(model_type: str, geometry: Geometry, tensors: Sequence[Tensor], field: str) -> Iterator[Finding]:
    """Everything about names and shapes; `tensors` are all of a complete checkpoint."""
    yield from _rows(geometry, tensors, field)
    layout = next((one for one in _layouts() if model_type in one["families"]), None)
    embedding = embedding_of(tensors)
    if layout is None or embedding is None or not embedding.name.endswith(EMBEDDINGS[0]):
        yield from _layers(geometry, tensors, field)
        return
    prefix = embedding.name.removesuffix(EMBEDDINGS[0])
    expected = dict(islice(_expected(layout, geometry, prefix), MOST_NAMES_A_TENSOR * len(tensors)))
    by_name = {tensor.name: tensor for tensor in tensors}
    yield from _absent(geometry, expected, by_name, field)
    yield from _shapes(expected, by_name, field)
    yield from _extra_layers(geometry, tensors, prefix, field)


def _rows(geometry: Geometry, tensors: Sequence[Tensor], field: str) -> Iterator[Finding]:
    """Embedding and output layer against vocab_size."""
    embedding = embedding_of(tensors)
    heads = [t for t in tensors if is_head(t.name) and t.name.endswith(".weight")]
    for tensor in (*([embedding] if embedding else []), *heads):
        rows = tensor.shape[0] if len(tensor.shape) == 2 and tensor.dtype in PLAIN else geometry.vocab_size
        if rows != geometry.vocab_size:
            message = (
                f"{tensor.name} has {rows} rows and config.json's vocab_size is {geometry.vocab_size}: "
                f"{'tokens were added without the configuration' if rows > geometry.vocab_size else 'ids beyond the rows have no weights'}."
            )
            fix = f"set vocab_size to {rows} in config.json if the tokenizer agrees, or fetch the model again"
            yield Finding("CKPT-VOCAB-ROWS", "error", message, field, f"{rows} rows", f"{geometry.vocab_size} rows", fix)


def _layers(geometry: Geometry, tensors: Sequence[Tensor], field: str) -> Iterator[Finding]:
    """For families whose names are not listed: every layer has some tensor."""
    held = {layer_of(t.name) for t in tensors} - {None}
    counted = sum(1 for layer in held if layer is not None and layer < geometry.layers)
    if held and counted < geometry.layers:
        first = next(layer for layer in range(len(held) + 1) if layer not in held)
        absent = f"{geometry.layers - counted} of them have no tensor; the first is layer {first}."
        message = f"config.json counts {geometry.layers} layers and {absent}"
        yield _missing(message, field, f"{len(held)} layers", f"{geometry.layers} layers")


def _expected(layout: Mapping[str, Any], geometry: Geometry, prefix: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = {
        "hidden": geometry.hidden_size,
        "queries": geometry.heads * geometry.head_dim,
        "keys": geometry.kv_heads * geometry.head_dim,
        "inner": geometry.intermediate_size,
        "expert_inner": geometry.expert_intermediate_size,
        "experts": geometry.experts,
    }
    yield f"{prefix}norm", (geometry.hidden_size,)
    for layer in range(geometry.layers):
        for name, widths in layout["layer"].items():
            yield f"{prefix}layers.{layer}.{name}", tuple(width[word] for word in widths)
        for group, parts in layout.get("expert", {}).items():
            for expert in range(geometry.experts):
                for name, widths in parts.items():
                    yield f"{prefix}layers.{layer}.{group}.{expert}.{name}", tuple(width[word] for word in widths)


def _absent(geometry: Geometry, expected: Mapping[str, Any], by_name: Mapping[str, Tensor], field: str) -> Iterator[Finding]:
    absent = [stem for stem in expected if not any(stem + ending in by_name for ending in ENDINGS)]
    if absent:
        message = (
            f"{len(absent)} of the {len(expected)} tensors that config.json's {geometry.layers} layers need are not stored; "
            f"the first is {absent[0]}.weight."
        )
        yield _missing(message, field, f"{len(expected) - len(absent)} tensors", f"{absent[0]}.weight")


def _shapes(expected: Mapping[str, tuple[int, ...]], by_name: Mapping[str, Tensor], field: str) -> Iterator[Finding]:
    wrong = []
    for stem, shape in expected.items():
        tensor = by_name.get(stem + ENDINGS[0])
        if tensor is not None and tensor.dtype in PLAIN and tensor.shape != shape:
            wrong.append((tensor, shape))
    if wrong:
        tensor, shape = wrong[0]
        message = (
            f"{len(wrong)} stored tensors have other shapes than config.json's sizes make; "
            f"the first is {tensor.name}, stored as {list(tensor.shape)}, expected {list(shape)}."
        )
        fix = "take config.json and weights of one revision"
        yield Finding("CKPT-SHAPE", "error", message, field, str(list(tensor.shape)), str(list(shape)), fix)


def _extra_layers(geometry: Geometry, tensors: Sequence[Tensor], prefix: str, field: str) -> Iterator[Finding]:
    highest = max((layer_of(t.name) or 0 for t in tensors if t.name.startswith(f"{prefix}layers.")), default=0) + 1
    if highest > geometry.layers:
        message = f"config.json counts {geometry.layers} layers, tensors are stored for {highest}; the rest would be left out."
        fix = "take config.json and weights of one revision"
        yield Finding("CKPT-LAYERS", "warning", message, field, f"{highest} layers stored", f"{geometry.layers} layers", fix)


def _missing(message: str, field: str, found: str, needed: str) -> Finding:
    return Finding("CKPT-TENSOR-MISSING", "error", message, field, found, needed, "fetch the model again")


def check_dtypes(tensors: Sequence[Tensor], bits: int, field: str) -> Iterator[Finding]:
    """Weight matrices of more than one floating-point dtype, where nothing says that they are quantized."""
    counts: dict[str, int] = {}
    for tensor in tensors:
        if len(tensor.shape) == 2 and tensor.dtype in PLAIN and weights_in(tensor, bits):
            counts[tensor.dtype] = counts.get(tensor.dtype, 0) + 1
    if len(counts) > 1:
        words = ", ".join(f"{count} {dtype}" for dtype, count in sorted(counts.items(), key=lambda item: -item[1]))
        message = f"The weight matrices are stored in several dtypes ({words}) and config.json names no quantization."
        fix = "save the model in one dtype"
        yield Finding("CKPT-DTYPE-MIXED", "warning", message, field, words, "one dtype", fix)
