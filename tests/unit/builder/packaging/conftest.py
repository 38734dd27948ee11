"""Engine records and a tokenizer folder, as small as packaging allows."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.packaging.plan import PackagePlan


def record(**changes: Any) -> dict[str, Any]:
    """An engine record in TensorRT-LLM's shape; `changes` by the name of the value."""
    values = {
        "vocab_size": 512,
        "max_batch_size": 8,
        "max_input_len": 127,
        "max_seq_len": 128,
        "max_draft_len": 5,
        "tokens_per_block": 32,
        "kv": "INT8",
    }
    values |= changes
    return {
        "pretrained_config": {"vocab_size": values["vocab_size"], "quantization": {"kv_cache_quant_algo": values["kv"]}},
        "build_config": {
            **{name: values[name] for name in ("max_batch_size", "max_input_len", "max_seq_len", "max_draft_len")},
            "plugin_config": {"tokens_per_block": values["tokens_per_block"]},
        },
        "tandem": {"end_ids": [2, 7]},
    }


@pytest.fixture
def write_engine(tmp_path: Path) -> Callable[..., Path]:
    def write(role: str, **changes: Any) -> Path:
        folder = tmp_path / "engines" / role
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(record(**changes)))
        return folder

    return write


@pytest.fixture
def plan(tmp_path: Path, write_engine: Callable[..., Path]) -> PackagePlan:
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    for name in (
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "modeling_x.py",
        "model.safetensors",
        "model.safetensors.index.json",
    ):
        (tokenizer / name).write_text(name)
    return PackagePlan(
        target_engine_dir=write_engine("target"),
        tokenizer_dir=tokenizer,
        max_batch_size=8,
        num_draft_tokens=5,
        target_pool_tokens=1024,
        draft_engine_dir=write_engine("draft", max_draft_len=0),
        draft_pool_tokens=1024,
        vocab_size=512,
        tokens_per_block=32,
        target_kv_cache="INT8",
    )


@pytest.fixture
def golden_plan(plan: PackagePlan) -> PackagePlan:
    """The plan with folders that are the same on every machine."""
    served = Path("/srv/tandem")
    return replace(
        plan,
        target_engine_dir=served / "engines/target",
        draft_engine_dir=served / "engines/draft",
        installed_at=served / "model_repository",
        max_input_tokens=96,
    )
