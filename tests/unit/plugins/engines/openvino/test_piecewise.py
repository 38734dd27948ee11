"""Compression in pieces gives what NNCF gives on the whole graph."""

import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from plugins.engines.openvino.export import export
from plugins.engines.openvino.piecewise import compress_int8, widen
from plugins.engines.openvino.weights import compress
from tests.unit.plugins.engines.openvino.checkpoints import save_checkpoint


@pytest.fixture(params=[("llama", "bfloat16"), ("gpt2", "float16"), ("qwen3_moe", "float32"), ("qwen3_moe", "bfloat16")], ids=str)
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    save_checkpoint(*request.param, tmp_path)
    return tmp_path


def constants(model: Any) -> Counter[tuple[str, str, str]]:
    """Type, shape and content of every constant."""
    nodes = (node for node in model.get_ops() if node.get_type_name() == "Constant")
    return Counter((type_name(n), str(n.get_output_shape(0)), hashlib.sha256(n.data.tobytes()).hexdigest()) for n in nodes)


def type_name(node: Any) -> str:
    return str(node.get_element_type().get_type_name())


@pytest.mark.parametrize(("large_values", "piece_values"), [(1 << 30, 1 << 30), (1 << 30, 5000), (0, 1), (8000, 9000)])
def test_pieces_give_what_the_whole_gives(checkpoint: Path, large_values: int, piece_values: int) -> None:
    import nncf

    whole, pieces = export(checkpoint), export(checkpoint)
    nncf.compress_weights(whole, mode=nncf.CompressWeightsMode.INT8_ASYM)
    compress_int8(pieces, large_values=large_values, piece_values=piece_values)
    assert constants(pieces) == constants(whole)
    assert Counter(n.get_type_name() for n in pieces.get_ops()) == Counter(n.get_type_name() for n in whole.get_ops())


@pytest.mark.parametrize("weights", ["none", "int8", "int4"])
def test_no_matrix_stays_in_16_bits(checkpoint: Path, weights: str) -> None:
    model = compress(export(checkpoint), weights, {"group_size": 16})
    left = [n for n in model.get_ops() if n.get_type_name() == "Constant" and type_name(n) in ("bf16", "f16")]
    assert all(n.data.size < 32 * 64 for n in left), "only scales are smaller than a key projection"


def test_widened_constants_keep_their_values() -> None:
    import numpy as np
    import openvino as ov
    from openvino import opset13 as op

    values = np.array([[1.5, -2.0], [0.25, 3.0]], dtype=np.float16)
    fed = op.parameter([1, 2], ov.Type.f32)
    model = ov.Model([op.matmul(fed, op.convert(op.constant(values), ov.Type.f32), False, True)], [fed])
    widen(model)
    (constant,) = (n for n in model.get_ops() if n.get_type_name() == "Constant")
    assert constant.data.dtype == np.float32
    assert constant.data.tolist() == values.tolist()


def test_vectors_are_widened_by_the_export(checkpoint: Path) -> None:
    left = [n for n in export(checkpoint).get_ops() if n.get_type_name() == "Constant" and type_name(n) in ("bf16", "f16")]
    assert all(len(n.get_output_shape(0)) > 1 for n in left)


def test_compression_tells_nobody(tmp_path: Path) -> None:
    code = """
import numpy as np, openvino as ov
from openvino import opset13 as op
from plugins.engines.openvino.weights import compress
fed = op.parameter([1, 64], ov.Type.f32)
compress(ov.Model([op.matmul(fed, op.constant(np.ones((64, 64), np.float32)), False, True)], [fed]), "int8", {})
from nncf.telemetry import wrapper
print(type(wrapper.telemetry).__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split()[-1] == "MagicMock"
