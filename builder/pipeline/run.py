"""The stages of a plan, run in order: what is there is reused, what is not is made and moved into place."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from builder import registry
from builder.api import EngineRequest, Progress
from builder.errors import MissingError
from builder.hardware.host import free_disk_bytes
from builder.packaging.plan import PackagePlan
from builder.packaging.repository import package
from builder.pipeline.build import BuildJob, build_engine
from builder.pipeline.session import Session
from builder.planner.stages import PlannedStage

DISK_RESERVE_BYTES = 200_000_000


@dataclass(frozen=True)
class StageResult:
    """One stage that ran or was reused: seconds taken, peak memory of its worker in bytes (0 when none ran)."""

    name: str
    reused: bool
    reason: str
    seconds: float
    peak_memory_bytes: int = 0


Reporter = Callable[[str], "Progress"]
"""Called with a stage's name before it runs; gives the progress callback for it."""
Listener = Callable[[StageResult], None]


def build(session: Session, reporter: Reporter, listener: Listener) -> None:
    """Build stages. Raises MissingError, StageError, RefusedError."""
    engine = registry.engine(session.plan.pair.spec.engine.kind)
    waiting = [s for s in session.plan.stages if s.name.startswith("build-") and not session.workspace.reuse(s, verify=False).hit]
    if waiting and (missing := engine.missing_packages()):
        raise MissingError(
            "PACKAGE-MISSING",
            f"building {session.plan.pair.spec.engine.kind} engines needs packages that are not installed",
            found=f"no {', '.join(missing)}",
            needed=", ".join(missing),
            fix=f"pip install 'trt-tandem[{session.plan.pair.spec.engine.kind}]'",
        )
    for request, needs in zip(session.plan.requests, session.plan.build_needs, strict=True):
        stage = _stage(session, f"build-{request.role}")
        _run(session, stage, reporter, listener, partial(_build_one, session, request, reporter), needs.disk_bytes)


def package_repository(session: Session, reporter: Reporter, listener: Listener) -> None:
    """The model repository, out of engines that are there. Raises RefusedError, StageError."""
    stage = _stage(session, "package")
    _run(session, stage, reporter, listener, lambda: _package(session, stage), 0)


def _stage(session: Session, name: str) -> PlannedStage:
    return next(s for s in session.plan.stages if s.name == name)


def _run(session: Session, stage: PlannedStage, reporter: Reporter, listener: Listener, make: Callable[[], int], needed_bytes: int) -> None:
    began = time.monotonic()
    reuse = session.workspace.reuse(stage, verify=True)
    if reuse.hit:
        listener(StageResult(stage.name, True, reuse.reason, time.monotonic() - began))
        return
    if needed_bytes:
        _require_disk(session.workspace.root, needed_bytes + DISK_RESERVE_BYTES)
    reporter(stage.name)
    peak = make()
    listener(StageResult(stage.name, False, reuse.reason, time.monotonic() - began, peak))


def _build_one(session: Session, request: EngineRequest, reporter: Reporter) -> int:
    stage = _stage(session, f"build-{request.role}")
    log = session.workspace.logs / f"{stage.name}.log"
    kind = session.plan.pair.spec.engine.kind
    peaks: list[int] = []

    def write(folder: Path) -> None:
        peaks.append(build_engine(BuildJob(kind, request, folder), log, reporter(stage.name)))

    session.workspace.fill(stage, write, _now())
    return peaks[0]


def _package(session: Session, stage: PlannedStage) -> int:
    spec, workspace = session.plan.pair.spec, session.workspace
    memory = session.plan.memory
    assert memory is not None
    pools = {share.role: share.pool_tokens for share in memory.engines}
    plan = PackagePlan(
        target_engine_dir=workspace.path("engines/target"),
        tokenizer_dir=workspace.path("engines/target/tokenizer"),
        max_batch_size=spec.limits.max_batch_size,
        num_draft_tokens=spec.speculation.max_draft_tokens if spec.draft.method != "none" else 0,
        target_pool_tokens=pools["target"],
        draft_engine_dir=workspace.path("engines/draft") if spec.has_draft_model else None,
        draft_pool_tokens=pools.get("draft", 0),
        lookup=spec.uses_lookup,
        adaptive=spec.speculation.adaptive,
        reuse=spec.kv_cache.reuse,
        max_concurrent_requests=spec.serve.max_concurrent_requests,
        max_input_tokens=spec.limits.max_input_tokens,
        host_offload_bytes=spec.kv_cache.host_offload_bytes,
        installed_at=workspace.path(stage.output),
    )
    workspace.fill(stage, lambda folder: package(plan, folder), _now())
    return 0


def _require_disk(root: Path, needed_bytes: int) -> None:
    free_bytes = free_disk_bytes(root)
    if free_bytes < needed_bytes:
        raise MissingError(
            "DISK-FULL",
            f"{root} has {free_bytes / 1e6:.0f} MB left, this stage may need {needed_bytes / 1e6:.0f} MB",
            found=f"{free_bytes} bytes",
            needed=f"{needed_bytes} bytes",
            fix="free some space, or take --build-root on another disk",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
