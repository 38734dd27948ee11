"""The engine benchmark of a built pair."""

from pathlib import Path

from builder import __version__, registry
from builder.api import Progress
from builder.bench.engine import PairUnderTest, PeersAt, bench_prompts, open_sessions, run_bench
from builder.bench.report import BenchReport, BenchSettings
from builder.bench.systems import OURS
from builder.gates.prompts import load_prompts
from builder.pipeline.session import Session
from builder.spec import PairSpec


def bench_pair(
    session: Session, *, peers: Path, prompts: Path | None, settings: BenchSettings, command: str, progress: Progress
) -> BenchReport:
    """Measure the built engines of a pair file against the peers. Raises RefusedError, StageError."""
    session.require_built(("build-target", "build-draft"))
    engine = registry.engine(session.plan.pair.spec.engine.kind)
    pair = _pair(session)
    progress("loading the engine", None)
    opened = open_sessions(engine, pair, settings)
    try:
        encoded = bench_prompts(opened[OURS], load_prompts(prompts), pair, settings)
        at = PeersAt(peers.resolve(), session.workspace.root.parent / "peers", session.workspace.logs)
        return run_bench(opened, encoded, pair, at, settings, progress, command=command)
    finally:
        for one in opened.values():
            one.close()


def _pair(session: Session) -> PairUnderTest:
    plan, spec = session.plan, session.plan.pair.spec
    builds = {stage.name.removeprefix("build-"): stage for stage in plan.stages if stage.name.startswith("build-")}
    engine_versions = registry.engine(spec.engine.kind).versions()
    return PairUnderTest(
        name=spec.name,
        engines={role: session.workspace.path(stage.output) for role, stage in builds.items()},
        checkpoints={str(request.role): request.checkpoint for request in plan.requests},
        digests={role: str(stage.inputs["checkpoint"]) for role, stage in builds.items()},
        max_sequence_tokens=spec.limits.max_sequence_tokens,
        max_draft_tokens=spec.speculation.max_draft_tokens,
        facts={"trt-tandem": __version__, **engine_versions, **_limits(spec)},
    )


def _limits(spec: PairSpec) -> dict[str, str]:
    """What of the pair file decides speed."""
    precision = f"{spec.target.weights} weights, {spec.target.kv_cache} KV cache"
    draft = f"; draft {spec.draft.weights} weights, at most {spec.speculation.max_draft_tokens} tokens" if spec.draft.checkpoint else ""
    limits = f"at most {spec.limits.max_batch_size} sequences and {spec.limits.max_batched_tokens} tokens a pass"
    return {"precision": f"{precision}{draft}", "limits": limits}
