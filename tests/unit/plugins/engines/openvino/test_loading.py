"""Which checkpoints keep their 16-bit weights while they are exported."""

from pathlib import Path

import pytest

from plugins.engines.openvino.loading import load_model, stored_type
from tests.unit.plugins.engines.openvino.checkpoints import save_checkpoint


@pytest.mark.parametrize(("dtype", "stored"), [("float32", "F32"), ("bfloat16", "BF16"), ("float16", "F16")])
def test_weights_are_loaded_in_the_type_they_are_stored_in(dtype: str, stored: str, tmp_path: Path) -> None:
    save_checkpoint("llama", dtype, tmp_path)
    assert stored_type(tmp_path) == stored
    assert {str(p.dtype) for p in load_model(tmp_path).parameters()} == {f"torch.{dtype}"}


def test_mixed_types_and_other_files_have_no_stored_type(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    assert stored_type(tmp_path) is None
    save_file({"a": torch.zeros(2, dtype=torch.bfloat16)}, tmp_path / "1.safetensors")
    save_file({"b": torch.zeros(2, dtype=torch.float32)}, tmp_path / "2.safetensors")
    assert stored_type(tmp_path) is None


def test_model_whose_buffers_would_be_rounded_is_loaded_in_float32(tmp_path: Path) -> None:
    import torch

    save_checkpoint("gemma3_text", "bfloat16", tmp_path)
    model = load_model(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {b.dtype for b in model.buffers() if b.is_floating_point()} == {torch.float32}
