"""An engine lane of TensorRT-LLM that this release plans and does not build: what both have in common."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from builder.api import (
    API_VERSION,
    PLAN_ONLY,
    BuildNeeds,
    EngineMemory,
    EngineOptions,
    EngineRequest,
    EngineSession,
    Finding,
    ModelShape,
    Progress,
    RefusedError,
    ServerNeeds,
    StoredFormat,
)
from plugins.nvidia.memory import build_needs, engine_memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PACKAGES = ("tensorrt_llm",)
RECORD_FILE = "config.json"
DEFAULT_POOL_FRACTION = 0.9
"""free_gpu_memory_fraction, what TensorRT-LLM takes of the free memory when nobody says otherwise (releases 0.16 to 1.2; older texts say
0.85)."""


class PlanOnlyEngine:
    """All of an engine plug-in but its rules; a lane adds `kind`, `adapts_draft_length`, `check` and `check_deployment`."""

    kind: str
    api_version = API_VERSION
    default_pool_fraction = DEFAULT_POOL_FRACTION
    adapts_draft_length: bool

    def memory(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> EngineMemory:
        return engine_memory(request, shape, self.kind, stored)

    def build_needs(self, request: EngineRequest, shape: ModelShape, stored: StoredFormat | None = None) -> BuildNeeds:
        return build_needs(request, shape, self.kind, stored)

    def versions(self) -> Mapping[str, str]:
        return {name: found for name in PACKAGES if (found := _installed(name))}

    def missing_packages(self) -> Sequence[str]:
        """None: no package makes this release build the lane."""
        return ()

    def build(self, request: EngineRequest, destination: Path, progress: Progress) -> NoReturn:
        """Raises RefusedError LANE-PLAN-ONLY."""
        self._plan_only()

    def record(self, engine_dir: Path) -> Mapping[str, Any]:
        """`config.json` of a folder that upstream's tools made."""
        content: Mapping[str, Any] = json.loads((engine_dir / RECORD_FILE).read_text(encoding="utf-8"))
        return content

    def server_needs(self) -> ServerNeeds:
        """Nothing: the server's own backends run these engines."""
        return ServerNeeds()

    def parent_logits(self, checkpoint: Path, windows: Sequence[Sequence[int]]) -> "Iterator[NDArray[np.float32]]":
        """Raises RefusedError LANE-PLAN-ONLY."""
        self._plan_only()

    def open(self, target_dir: Path, draft_dir: Path | None, options: EngineOptions) -> EngineSession:
        """Raises RefusedError LANE-PLAN-ONLY."""
        self._plan_only()

    def plan_only(self) -> Finding:
        """What a plan says of this lane."""
        message = f"This release of trt-tandem plans engine.kind {self.kind}; it does not build or run it yet."
        fix = "use `tandem plan` for this pair, or set engine.kind: openvino to build it on a CPU"
        return Finding(PLAN_ONLY, "info", message, "engine.kind", self.kind, "openvino", fix)

    def _plan_only(self) -> NoReturn:
        note = self.plan_only()
        raise RefusedError(note.code, note.message, field=note.field, found=note.found, needed=note.needed, fix=note.fix)


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
