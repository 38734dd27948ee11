"""The protocol of an engine lane, and the values that the plan passes to it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from builder.api.model import ModelFacts, ModelShape, StoredFormat
from builder.api.session import EngineOptions, EngineSession
from builder.errors import Finding
from builder.hardware.chips import Chip

if TYPE_CHECKING:
    import numpy as np

API_VERSION = 2
PLAN_ONLY = "LANE-PLAN-ONLY"
"""Code of the finding with which a lane's `check_deployment` says that it can be planned but not built; a build is refused with it."""

Role = Literal["target", "draft"]
Progress = Callable[[str, float | None], None]
"""Called with what is being done and the share done in 0..1 (None when unknown)."""


@dataclass(frozen=True)
class EngineRequest:
    """What one engine must be, decided by the plan.

    `weights` and `kv_cache` are words of the pair file; counts are tokens or sequences; `chip` is a row of configs/chips.yaml.
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
    release: str | None = None
    chip: str = "cpu"
    tensor_parallel: int = 1
    pipeline_parallel: int = 1


@dataclass(frozen=True)
class Deployment:
    """The whole pair as a lane sees it, for rules that concern more than one engine.

    `method` is the pair file's `draft.method`; `max_prompt_tokens` its `limits.max_input_tokens`, the longest prompt of a user: engines are
    built for longer ones (`max_input_tokens`), because the orchestrator sends the grown sequence as a prompt.
    """

    chip: Chip
    chip_count: int
    target: EngineRequest
    target_facts: ModelFacts
    draft: EngineRequest | None
    draft_facts: ModelFacts | None
    method: str
    acceptance: Literal["tokens", "logits"]
    max_draft_tokens: int
    reuse: bool
    host_offload_bytes: int
    topology: Literal["orchestrated", "single"]
    max_prompt_tokens: int = 0


@dataclass(frozen=True)
class EngineMemory:
    """Memory of one engine on each of its devices: weights, keys and values of all layers for one token, activations at the built limits,
    and what the lane takes besides. `kv_cache` is the precision that `auto` stood for, in the pair file's words; `lookup_bytes` the part of
    the weights of which a pass reads a row for each token, None where the lane does not say: an embedding that is not the output layer too.
    """

    weights_bytes: int
    kv_bytes_per_token: int
    other_bytes: int = 0
    activation_bytes: int = 0
    kv_cache: str = ""
    lookup_bytes: int | None = None


@dataclass(frozen=True)
class BuildNeeds:
    """What making one engine takes at its peak: the host's memory, free disk, and memory of each device used."""

    host_memory_bytes: int
    disk_bytes: int
    device_memory_bytes: int = 0


@dataclass(frozen=True)
class ServerNeeds:
    """What the Triton server needs so that it can run this lane's engines: one folder per backend name, and environment variables."""

    backends: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """An engine lane: builds the engine of one checkpoint and says how Triton runs it."""

    kind: str
    api_version: int
    default_pool_fraction: float | None
    """Share of the free device memory that an engine takes for its paged cache when nobody says how much; None where the lane has no such
    setting."""
    adapts_draft_length: bool
    """Whether each round may choose its draft length when `speculation.adaptive` is true; False where it is fixed as the lane starts."""

    def check(self, request: EngineRequest) -> Sequence[Finding]:
        """Everything that can be refused of one engine from small files, without heavy packages."""

    def check_deployment(self, deployment: Deployment) -> Sequence[Finding]:
        """Everything that can be refused of the pair on its chips: release, chip, precision, and settings that this lane has not."""

    def memory(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> EngineMemory:
        """Memory that the engine will take on each of its devices, by formula. `stored` is what the checkpoint already holds."""

    def build_needs(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> BuildNeeds:
        """What building the engine takes at its peak, by formula. `stored` is what the checkpoint already holds."""

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
