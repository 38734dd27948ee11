"""The two models of a pair as the checks name them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from builder.checkpoint import Checkpoint
from builder.checkpoint.tokenizer import Tokenizer
from builder.spec import Pair

Role = Literal["target", "draft"]


@dataclass(frozen=True)
class Model:
    """One model of the pair: `name` is what the pair file calls it, `tokenizer` None when it cannot be read."""

    role: Role
    name: str
    checkpoint: Checkpoint
    tokenizer: Tokenizer | None

    @property
    def field(self) -> str:
        return f"{self.role}.checkpoint"

    @property
    def width(self) -> int:
        """Number of token ids that the model itself has: rows of its embedding and numbers in a row of logits."""
        return self.checkpoint.vocab_size

    def __str__(self) -> str:
        return f"the {self.role} {self.name}"


def model_of(pair: Pair, role: Role, checkpoint: Checkpoint, tokenizer: Tokenizer | None) -> Model:
    """The model as the pair file names it."""
    spec = pair.spec.target if role == "target" else pair.spec.draft
    return Model(role, _name(spec.checkpoint or checkpoint.path.name), checkpoint, tokenizer)


def _name(checkpoint: str) -> str:
    """A hub id as it is, a folder by its last part."""
    return checkpoint if checkpoint.count("/") <= 1 and not checkpoint.startswith(("/", ".", "~")) else Path(checkpoint).name


def ids(count: int) -> str:
    """A number of token ids, in words."""
    return f"{count} token id{'' if count == 1 else 's'}"


def capital(model: Model) -> str:
    """The model at the beginning of a sentence."""
    return f"The {model.role} {model.name}"
