"""Checkpoints without weights, and the findings of a pair of them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.api import ModelShape, StoredFormat
from builder.checkpoint import Checkpoint
from builder.checkpoint.generation import read_end_ids
from builder.errors import Finding
from builder.planner.checks import check_pair
from builder.spec import load_pair

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]
WORDS = {f"t{i}": i for i in range(60)}
BEGIN, END, PAD = {"id": 60, "content": "<s>"}, {"id": 61, "content": "</s>"}, {"id": 62, "content": "<pad>"}


@pytest.fixture
def checkpoint(tmp_path: Path) -> MakeCheckpoint:
    """Writes the small files of a model of 64 ids, 63 of which its tokenizer names; keyword arguments change them."""

    def make(
        name: str,
        *,
        width: int = 64,
        words: Mapping[str, int] = WORDS,
        added: tuple[Mapping[str, Any], ...] = (BEGIN, END, PAD),
        tokenizer: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        template: str = "",
        config: Mapping[str, Any] | None = None,
        stored: str = "huggingface",
        model_type: str = "llama",
        **shape: int,
    ) -> Checkpoint:
        folder = tmp_path / "models" / name
        folder.mkdir(parents=True)
        content = {"model": {"type": "BPE", "vocab": dict(words)}, "added_tokens": list(added), **(tokenizer or {})}
        (folder / "tokenizer.json").write_text(json.dumps(content))
        named = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", **(settings or {})}
        (folder / "tokenizer_config.json").write_text(json.dumps(named))
        if template:
            (folder / "chat_template.jinja").write_text(template)
        default_parameters = 1_000_000_000 if name.startswith("draft") else 70_000_000_000
        sizes = {"parameters": default_parameters, "layers": 2, "kv_heads": 1, "head_dim": 8, "max_positions": 4096, **shape}
        values = config or {}
        end_ids = read_end_ids(folder, values)
        return Checkpoint(folder, values, model_type, ModelShape(vocab_size=width, **sizes), StoredFormat(stored), end_ids=end_ids)

    return make


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Findings of a pair; keyword arguments are sections of the pair file."""

    def run(target: Checkpoint, draft: Checkpoint | None = None, /, **sections: Mapping[str, Any]) -> list[Finding]:
        folders = {"target": {"checkpoint": f"models/{target.path.name}"}}
        folders["draft"] = {"checkpoint": f"models/{draft.path.name}"} if draft else {"method": "ngram"}
        data: dict[str, Any] = {"name": "pair", **folders}
        for section, values in sections.items():
            data[section] = {**data.get(section, {}), **values}
        file = tmp_path / "pair.yaml"
        file.write_text(yaml.safe_dump(data))
        return list(check_pair(load_pair(file), target, draft))

    return run
