"""Tracing without computing: 16-bit checkpoints give the float32 parent's logits, and torch is left as it was."""

from pathlib import Path

import numpy as np
import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.runtime.llm import Engine, Request, Result
from tests.unit.plugins.engines.openvino.checkpoints import save_checkpoint


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3_moe"])
def test_stored_16_bit_weights_give_float32_logits(family: str, dtype: str, tmp_path: Path) -> None:
    save_checkpoint(family, dtype, tmp_path)
    ENGINE.build(EngineRequest("target", tmp_path, "none", "fp32", 32, 2, 256, 300, 48, 4), tmp_path / "engine", lambda what, share: None)
    prompt = tuple(int(i) for i in np.random.default_rng(0).integers(3, 128, 90))
    result = Engine.load(tmp_path / "engine", threads=1).generate([Request(prompt, 6, want_generation_logits=True)])[0]
    assert isinstance(result, Result)
    assert result.generation_logits is not None
    expected = next(iter(ENGINE.parent_logits(tmp_path, [(*prompt, *result.output_ids)])))[89:-1]
    assert np.abs(result.generation_logits - expected).max() < 1e-4


def test_torch_is_left_as_it_was(tiny_checkpoint: Path) -> None:
    import torch

    from plugins.engines.openvino.export import export

    before = torch.bmm, torch.nn.Linear.forward
    export(tiny_checkpoint)
    assert (torch.bmm, torch.nn.Linear.forward) == before
