"""Compression of weights piece by piece, so that a build's time and memory are not those of NNCF on the whole graph.

NNCF (3.4) describes the whole graph to itself, searches it for patterns, and compiles a model for each matrix to do the arithmetic. For
matrices of a few million values that costs far more than the arithmetic. In 8 bits a row depends on nothing outside it, so NNCF is given
small graphs that hold nothing but products with a few of the matrices, and these are computed in numpy. The result is the same to the bit.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

LARGE_VALUES = 1 << 23
"""A matrix of more values is a piece of its own and left to the compiled arithmetic, which reads 16 bits and needs no memory in between."""

PIECE_VALUES = 1 << 24
"""Values in a piece of small matrices; bounds the float32 copies."""

IN_NUMPY_VALUES = 1 << 29
"""A whole model of up to this many values is compressed to 4 bits in numpy, from float32 copies."""

_IN_NUMPY = "NNCF_DISABLE_OPTIMIZED_COMPRESSION"


@dataclass(frozen=True)
class _Use:
    """A node that reads a constant matrix, and through which port."""

    node: Any
    port: int

    @property
    def source(self) -> Any:
        """The output that carries the matrix in the type that the node computes in."""
        return self.node.input_value(self.port)

    @property
    def values(self) -> int:
        return prod(self.source.get_shape())


def compress_int8(model: Any, *, large_values: int = LARGE_VALUES, piece_values: int = PIECE_VALUES) -> None:
    """8 bits, and a scale and a zero point a row, for every matrix that a product or an embedding reads, in place."""
    import nncf

    for piece in _pieces(_uses(model), large_values, piece_values):
        large = piece[0].values > large_values
        copies = [_copy(use, widened=not large) for use in piece]
        with contextlib.nullcontext() if large else _numpy_arithmetic():
            nncf.compress_weights(_model_of(copies), mode=nncf.CompressWeightsMode.INT8_ASYM)
        for use, copy in zip(piece, copies, strict=True):
            _replace(use.source, copy.source)


def compress_int4(model: Any, group_size: int, ratio: float) -> None:
    """4 bits for the share `ratio` of the products' matrices, 8 for the most sensitive rest, in place.

    Which matrices those are is decided over the whole graph, so NNCF is given all of it.
    """
    import nncf

    small = sum(use.values for use in _uses(model)) <= IN_NUMPY_VALUES
    if small:
        widen(model)
    with _numpy_arithmetic() if small else contextlib.nullcontext():
        nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT4_ASYM, group_size=group_size, ratio=ratio)


def widen(model: Any, *, matrices: bool = True) -> None:
    """Turn 16-bit constants that are converted on use into float32 constants, in place; with or without the matrices among them."""
    for node in model.get_ops():
        if node.get_type_name() == "Convert" and (constant := _constant(node.output(0))) is not None:
            half = constant.get_element_type().get_type_name() in ("bf16", "f16")
            if half and (matrices or not _is_matrix(constant)):
                _replace(node.output(0), _float32(constant).output(0))


def _uses(model: Any) -> list[_Use]:
    """The first use of each matrix, in the graph's order."""
    found: dict[str, _Use] = {}
    for node in model.get_ordered_ops():
        for port in {"MatMul": (0, 1), "Gather": (0,)}.get(node.get_type_name(), ()):
            source = node.input_value(port)
            if _is_matrix(_constant(source)):
                found.setdefault(source.get_node().get_name(), _Use(node, port))
    return list(found.values())


def _constant(source: Any) -> Any | None:
    """The constant behind an output, read directly or converted."""
    node = source.get_node()
    if node.get_type_name() == "Convert":
        node = node.input_value(0).get_node()
    return node if node.get_type_name() == "Constant" else None


def _is_matrix(constant: Any | None) -> bool:
    """Whether compression pays: the table of a rotary embedding's frequencies, a row, is multiplied too."""
    if constant is None or constant.get_element_type().get_type_name() not in ("bf16", "f16", "f32"):
        return False
    sizes: list[int] = list(constant.get_output_shape(0))
    return sum(size > 1 for size in sizes) > 1


def _pieces(uses: list[_Use], large_values: int, piece_values: int) -> Iterator[list[_Use]]:
    """Large matrices alone, small ones together."""
    piece: list[_Use] = []
    for use in uses:
        if use.values > large_values:
            yield [use]
            continue
        if piece and sum(u.values for u in piece) + use.values > piece_values:
            yield piece
            piece = []
        piece.append(use)
    if piece:
        yield piece


def _copy(use: _Use, *, widened: bool) -> _Use:
    """A node of the same kind and attributes over the same matrix, fed by a parameter."""
    from openvino import opset13 as op

    constant = _constant(use.source)
    weight = _float32(constant) if widened else op.convert(_shared(constant), use.source.get_element_type())
    other = use.node.input_value(1 - use.port)
    fed = op.parameter(other.get_partial_shape(), other.get_element_type())
    if use.node.get_type_name() == "Gather":
        return _Use(op.gather(weight, fed, op.constant(0)), 0)
    order = (weight, fed) if use.port == 0 else (fed, weight)
    attributes = use.node.get_attributes()
    return _Use(op.matmul(*order, attributes["transpose_a"], attributes["transpose_b"]), use.port)


def _model_of(copies: list[_Use]) -> Any:
    import openvino as ov

    return ov.Model([copy.node.output(0) for copy in copies], [copy.node.input_value(1 - copy.port).get_node() for copy in copies])


def _float32(constant: Any) -> Any:
    import numpy as np
    from openvino import opset13 as op

    return op.constant(constant.get_data(dtype=np.float32))


def _shared(constant: Any) -> Any:
    """A second constant over the same memory."""
    import openvino as ov
    from openvino import opset13 as op

    return op.constant(ov.Tensor(constant.data, constant.get_output_shape(0), constant.get_element_type()), shared_memory=True)


def _replace(old: Any, new: Any) -> None:
    for port in old.get_target_inputs():
        port.replace_source_output(new)


@contextlib.contextmanager
def _numpy_arithmetic() -> Iterator[None]:
    before = os.environ.get(_IN_NUMPY)
    os.environ[_IN_NUMPY] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_IN_NUMPY]
        else:
            os.environ[_IN_NUMPY] = before
