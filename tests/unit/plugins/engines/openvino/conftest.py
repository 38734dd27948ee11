"""A tiny random llama and engines built of it by the lane's own exporter."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.api import EngineRequest
from plugins.engines.openvino import ENGINE

VOCAB = 128
BuildTiny = Callable[..., Path]


def engine_request(checkpoint: Path, **changes: object) -> EngineRequest:
    """What the tests build unless they say otherwise."""
    values: dict[str, object] = {
        "role": "target",
        "checkpoint": checkpoint,
        "weights": "none",
        "kv_cache": "auto",
        "tokens_per_block": 32,
        "max_batch_size": 4,
        "max_input_tokens": 384,
        "max_sequence_tokens": 512,
        "max_batched_tokens": 384,
        "max_draft_tokens": 8,
    }
    return EngineRequest(**values | changes)  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers, grouped-query attention, random weights large enough that tokens differ clearly."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        initializer_range=0.3,
        tie_word_embeddings=False,
        eos_token_id=2,
    )
    folder = tmp_path_factory.mktemp("tiny_llama")
    LlamaForCausalLM(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {f"t{i}": i for i in range(VOCAB)}}, "added_tokens": []}))
    return folder


@pytest.fixture(scope="session")
def build_tiny(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> BuildTiny:
    """Builds the tiny engine with some values changed; equal requests are built once."""
    built: dict[str, Path] = {}

    def build(**changes: object) -> Path:
        key = repr(sorted(changes.items()))
        if key not in built:
            built[key] = tmp_path_factory.mktemp("engine")
            ENGINE.build(engine_request(tiny_checkpoint, **changes), built[key], lambda what, share: None)
        return built[key]

    return build


@pytest.fixture(scope="session")
def make_request() -> Callable[..., EngineRequest]:
    """Makes requests of engines."""
    return engine_request
