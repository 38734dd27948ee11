"""Precisions of the cache: the formula against what OpenVINO takes, exactness, and how near each one is to float32."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from builder.api import EngineRequest, ModelShape
from plugins.engines.openvino import ENGINE
from plugins.engines.openvino.kv_cache import PRECISIONS, WORDS, bytes_per_token, compile_properties
from plugins.engines.openvino.record import EngineRecord
from plugins.engines.openvino.runtime.runner import Feed, Runner

HEAD_DIM, KV_HEADS, LAYERS, BLOCKS = 64, 2, 2, 12
TOKENS = [int(i) for i in np.random.default_rng(3).integers(3, 128, 200)]
LoadRunner = Callable[[str], tuple[EngineRecord, Runner]]


def _computes_bf16() -> bool:
    import openvino as ov

    return "BF16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


@pytest.fixture(scope="module")
def engine_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A llama with heads of 64, so that a u4 row has two groups."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 4 * HEAD_DIM, "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": KV_HEADS}
    config = LlamaConfig(vocab_size=128, num_hidden_layers=LAYERS, max_position_embeddings=512, initializer_range=0.1, **sizes)
    folder = tmp_path_factory.mktemp("wide_heads")
    LlamaForCausalLM(config).save_pretrained(folder)
    ENGINE.build(EngineRequest("target", folder, "none", "fp32", 32, 2, 256, 300, 256, 4), folder / "engine", lambda what, share: None)
    return folder / "engine"


@pytest.fixture(scope="module")
def load(engine_dir: Path) -> LoadRunner:
    """The same engine with its cache in another precision: that is decided when it is loaded."""

    def load(kv_cache: str) -> tuple[EngineRecord, Runner]:
        if kv_cache == "bf16" and not _computes_bf16():
            pytest.skip("this CPU does not compute in bf16")
        record = EngineRecord(**{**EngineRecord.read(engine_dir).__dict__, "kv_cache": kv_cache})
        return record, Runner(engine_dir, record, BLOCKS, 1)

    return load


def logits(runner: Runner, chunks: list[int]) -> NDArray[np.float32]:
    blocks, rows, start = list(range(BLOCKS - 1, 0, -1)), [], 0
    while start < len(TOKENS):
        chunk = TOKENS[start : start + chunks[len(rows) % len(chunks)]]
        rows.append(runner.forward([Feed(chunk, start, blocks, 0)]).copy())
        start += len(chunk)
    return np.concatenate(rows)


@pytest.mark.parametrize("kv_cache", PRECISIONS)
def test_formula_is_what_the_cache_takes(load: LoadRunner, kv_cache: str) -> None:
    record, runner = load(kv_cache)
    allocated = sum(cache.nbytes for cache in runner._caches)
    assert allocated == (BLOCKS + 1) * 32 * record.kv_bytes_per_token


@pytest.mark.parametrize("kv_cache", PRECISIONS)
def test_grouping_of_tokens_into_passes_changes_no_bit(load: LoadRunner, kv_cache: str) -> None:
    _, runner = load(kv_cache)
    expected = logits(runner, [200])
    for chunks in ([1], [2], [5, 2, 11], [33, 1], [64]):
        assert (logits(runner, chunks) == expected).all(), chunks


def test_fewer_bits_are_further_from_float32(load: LoadRunner) -> None:
    exact = logits(load("f32")[1], [200])
    u8, u4 = (float(np.abs(logits(load(word)[1], [200]) - exact).mean()) for word in ("u8", "u4"))
    assert 0 < u8 < u4 / 4
    assert u4 < exact.std() / 2


@pytest.mark.parametrize(
    ("word", "row_bytes"), [("fp32", 256), ("bf16", 128), ("int8", 64 + 8), ("auto", 64 + 8), ("int4", 32 + 2 * 8)], ids=str
)
def test_plan_and_record_take_the_same_formula(word: str, row_bytes: int) -> None:
    request = EngineRequest("target", Path(), "int8", word, 32, 2, 256, 300, 256, 4)
    planned = ENGINE.memory(request, ModelShape(1000, LAYERS, KV_HEADS, HEAD_DIM)).kv_bytes_per_token
    assert planned == bytes_per_token(WORDS[word], LAYERS, KV_HEADS, HEAD_DIM) == 2 * LAYERS * KV_HEADS * row_bytes


def test_head_that_does_not_divide_into_groups_has_one_scale() -> None:
    assert PRECISIONS["u4"].row_bytes(80) == 40 + 8
    assert "KEY_CACHE_GROUP_SIZE" not in compile_properties("u4", 80)
    assert compile_properties("u4", 128)["KEY_CACHE_GROUP_SIZE"] == "32"
