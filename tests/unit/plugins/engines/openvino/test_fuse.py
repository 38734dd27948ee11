"""Merged projections: fewer products, the same logits, and still a model that compresses and pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.export import export
from plugins.engines.openvino.fuse import merge_projections
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.runner import Feed, Runner
from tests.unit.plugins.engines.openvino import checkpoints

SMALL = checkpoints.SMALL | {"pad_token_id": 0}
GPT2 = checkpoints.FAMILIES["gpt2"]
LAYERS, HEAD = 2, 1
PRODUCTS = {  # family: configuration, products of a layer that share no input with another
    "llama": (SMALL, 4),
    "qwen2": (SMALL, 4),
    "qwen3": (SMALL | {"head_dim": 16}, 4),
    "gemma": (SMALL | {"head_dim": 16}, 4),
    "phi": (SMALL, 3),
    "phi3": (SMALL, 4),
    "gpt2": (GPT2, 4),
}


def checkpoint(family: str, config: dict[str, Any], folder: Path) -> Path:
    """A tiny random model of a family, its biases random too."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **config), dtype=torch.float32)
    for name, values in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(values, std=0.3)
    model.save_pretrained(folder)
    return folder


def logits(model: Any) -> NDArray[np.float32]:
    import openvino as ov

    ids = np.random.default_rng(0).integers(3, 128, (1, 20))
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
    fed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "position_ids": np.arange(20)[None], "beam_idx": np.zeros(1, np.int32)}
    known = {name for port in model.inputs for name in port.names}
    result: NDArray[np.float32] = compiled({name: value for name, value in fed.items() if name in known})["logits"]
    return result


def products(model: Any) -> int:
    return sum(node.get_type_name() == "MatMul" for node in model.get_ops())


@pytest.mark.parametrize("family", PRODUCTS)
def test_one_product_for_each_input_and_the_same_logits(family: str, tmp_path: Path) -> None:
    config, for_each_layer = PRODUCTS[family]
    model = export(checkpoint(family, config, tmp_path))
    merged = model.clone()
    merge_projections(merged)
    rotary = products(model) - products_with_constant_weights(model)
    assert products(merged) == LAYERS * for_each_layer + HEAD + rotary
    assert np.abs(logits(merged) - logits(model)).max() < 1e-5


def products_with_constant_weights(model: Any) -> int:
    return sum(
        node.get_type_name() == "MatMul" and node.input_value(1).get_node().get_type_name() == "Constant" for node in model.get_ops()
    )


def test_same_model_gives_same_merged_weights(tmp_path: Path) -> None:
    """Builds are repeatable: the order of rows does not depend on the order of a set."""
    model = export(checkpoint("qwen2", SMALL, tmp_path))
    both = [model.clone(), model.clone()]
    for one in both:
        merge_projections(one)
    weights = [[node.data for node in one.get_ordered_ops() if node.get_type_name() == "Constant"] for one in both]
    assert all(np.array_equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_merged_model_with_biases_compresses_and_stays_exact(weights: str, tmp_path: Path, make_request: Callable[..., Any]) -> None:
    """A prompt in one pass and in passes of three: the same bits."""
    request = make_request(checkpoint("qwen2", SMALL, tmp_path), weights=weights)
    ENGINE.build(request, tmp_path / "engine", lambda what, share: None)
    runner = Runner(tmp_path / "engine", EngineRecord.read(tmp_path / "engine"), 8, 1)
    prompt = [int(i) for i in np.random.default_rng(0).integers(3, 128, 90)]
    whole = runner.forward([Feed(prompt, 0, [0, 1, 2], 0)]).copy()
    parts = [runner.forward([Feed(prompt[i : i + 3], i, [3, 4, 5], 0)]).copy() for i in range(0, 90, 3)]
    assert (np.concatenate(parts) == whole).all()
