"""What plug-ins may import from the core: protocols, value types, errors. Version 1.

An engine plug-in is an object with the methods of `Engine`, named by an entry point of the group `tandem.engines`. It is imported only
when a pair file asks for it, and must import its heavy packages only inside the methods that need them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from builder.errors import ExitCode, Finding, FindingsError, MissingError, RefusedError, Severity, StageError, TandemError

if TYPE_CHECKING:
    import numpy as np

API_VERSION = 1

Role = Literal["target", "draft"]
SpeculationMode = Literal["plain", "lookup", "draft", "draft_lookup"]
"""The target alone; drafts found in the text so far; drafts of the draft model; whichever of the two promises more."""
Progress = Callable[[str, float | None], None]
"""Called with what is being done and the share done in 0..1 (None when unknown)."""


@dataclass(frozen=True)
class EngineRequest:
    """What one engine must be, decided by the plan.

    `weights` and `kv_cache` are words of the pair file; counts are tokens or sequences.
    """

    role: Role
    checkpoint: Path
    weights: str
    kv_cache: str
    tokens_per_block: int
    max_batch_size: int
    max_input_tokens: int
    max_sequence_tokens: int
    max_batched_tokens: int
    max_draft_tokens: int
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelShape:
    """What decides the memory of a decoder-only model."""

    parameters: int
    layers: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True)
class EngineMemory:
    """Memory of one engine on its device: weights, keys and values of all layers for one token, and what the lane takes besides."""

    weights_bytes: int
    kv_bytes_per_token: int
    other_bytes: int = 0


@dataclass(frozen=True)
class ServerNeeds:
    """What the Triton server needs so that it can run this lane's engines: one folder per backend name, and environment variables."""

    backends: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineAnswer:
    """One answer: its token ids, the target's passes that made it, and the drafts in it; the lookup's are part of all drafts."""

    output_ids: tuple[int, ...]
    rounds: int
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    lookup_drafted_tokens: int = 0
    lookup_accepted_tokens: int = 0


@dataclass(frozen=True)
class EngineCounters:
    """Since the engine was loaded: passes, seconds inside the kernels, and seconds of whole steps, what is around the kernels included."""

    passes: int
    infer_s: float
    step_s: float


@dataclass(frozen=True)
class EngineOptions:
    """How an engine is opened in this process. `reuse` keeps blocks of finished requests; None leaves a choice to the lane.

    `tuned_for` tells a lane that can favour one of them what matters more: quick decode steps, or long prompts and contexts.
    """

    threads: int | None = None
    max_cached_tokens: int | None = None
    max_draft_tokens: int | None = None
    reuse: bool = True
    tuned_for: Literal["decoding", "long_context"] | None = None


class EngineSession(Protocol):
    """An engine that runs in this process, with its draft when it has one."""

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Token ids that end an answer."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text as one user message of the model's chat template, or as it is where there is no template."""

    def generate(self, prompts: Sequence[Sequence[int]], *, new_tokens: int, mode: SpeculationMode) -> list[EngineAnswer]:
        """Greedy answers of at most `new_tokens` tokens to all prompts together. Raises StageError when one is refused."""

    def counters(self) -> EngineCounters:
        """What was counted so far."""

    def close(self) -> None:
        """Give back what the engine holds."""


class Engine(Protocol):
    """An engine lane: builds the engine of one checkpoint and says how Triton runs it."""

    kind: str
    api_version: int

    def check(self, request: EngineRequest) -> Sequence[Finding]:
        """Everything that can be refused from small files, without heavy packages."""

    def memory(self, request: EngineRequest, shape: ModelShape) -> EngineMemory:
        """Memory that the engine will take, by formula."""

    def versions(self) -> Mapping[str, str]:
        """Versions of the tools that shape the result; part of the stage's key. Missing packages are left out."""

    def missing_packages(self) -> Sequence[str]:
        """Names of packages that `build` needs and that are not installed."""

    def build(self, request: EngineRequest, destination: Path, progress: Progress) -> None:
        """Write the engine folder (`config.json` with `pretrained_config` and `build_config`, weights, tokenizer) to an empty folder.

        Raises StageError.
        """

    def record(self, engine_dir: Path) -> Mapping[str, Any]:
        """The engine's own record (`config.json`)."""

    def server_needs(self) -> ServerNeeds:
        """What the server needs to run these engines."""

    def parent_logits(self, checkpoint: Path, windows: Sequence[Sequence[int]]) -> "Iterator[np.ndarray[Any, np.dtype[np.float32]]]":
        """Logits [len(window), vocab] float32 of the unquantized parent for each window of token ids, one after another."""

    def open(self, target_dir: Path, draft_dir: Path | None, options: EngineOptions) -> EngineSession:
        """Run built engines in this process. Raises RefusedError ENGINE-NO-SESSION in a lane that cannot."""


class Demo(Protocol):
    """A demo pair that is made from packages alone."""

    name: str

    def fetch(self, destination: Path, progress: Progress) -> Mapping[str, Path]:
        """Make the checkpoint folders under `destination`; skips what is there and whole. Raises StageError, MissingError."""


__all__ = [
    "API_VERSION",
    "Demo",
    "Engine",
    "EngineAnswer",
    "EngineCounters",
    "EngineMemory",
    "EngineOptions",
    "EngineRequest",
    "EngineSession",
    "ExitCode",
    "Finding",
    "FindingsError",
    "MissingError",
    "ModelShape",
    "Progress",
    "RefusedError",
    "Role",
    "ServerNeeds",
    "Severity",
    "SpeculationMode",
    "StageError",
    "TandemError",
]
