"""What is known of a checkpoint once its small files and tensor headers are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.api.model import ModelFacts, ModelShape, StoredFormat
from builder.checkpoint.rope import Rope
from builder.checkpoint.safetensors import Tensor
from builder.errors import Finding


@dataclass(frozen=True)
class Checkpoint:
    """A decoder-only checkpoint.

    `config` is config.json as it stands ({} for GGUF); `rope` is None where positions are not rotary; `embedding_rows` counts the rows
    stored, which padding may make more than `shape.vocab_size` (0 when no header says); `end_ids` are the ids that end an answer;
    `findings` holds what is wrong with it but leaves enough to plan with.
    """

    path: Path
    config: Mapping[str, Any]
    model_type: str
    shape: ModelShape
    stored: StoredFormat = field(default_factory=StoredFormat)
    rope: Rope | None = None
    tensors: tuple[Tensor, ...] = ()
    embedding_rows: int = 0
    end_ids: tuple[int, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def facts(self) -> ModelFacts:
        """What an engine lane may know of it."""
        return ModelFacts(self.path, self.config, self.shape, self.stored)

    @property
    def vocab_size(self) -> int:
        return self.shape.vocab_size

    @property
    def layers(self) -> int:
        return self.shape.layers

    @property
    def kv_heads(self) -> int:
        return self.shape.kv_heads

    @property
    def head_dim(self) -> int:
        return self.shape.head_dim

    @property
    def max_positions(self) -> int:
        return self.shape.max_positions

    @property
    def parameters(self) -> int:
        return self.shape.parameters

    @property
    def has_chat_template(self) -> bool:
        """Whether its tokenizer can turn a message into a prompt."""
        if (self.path / "chat_template.jinja").is_file() or (self.path / "chat_template.json").is_file():
            return True
        file = self.path / "tokenizer_config.json"
        return file.is_file() and '"chat_template"' in file.read_text(encoding="utf-8")
