"""The plan: what will be built, from what, what it takes, what it promises, and every reason to refuse."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from builder.api import PLAN_ONLY, BuildNeeds, Chip, Engine, EngineRequest, Role
from builder.checkpoint import Checkpoint, ModelAccess, hub_source, locate_checkpoint, read_checkpoint
from builder.checkpoint.tokenizer import Tokenizer, read_tokenizer
from builder.errors import Finding, TandemError
from builder.hardware.chips import find_chip
from builder.planner.checks import check_pair
from builder.planner.cost import CostPlan, goal_is_stated
from builder.planner.memory import MemoryPlan
from builder.planner.outlook import Outlook, look_ahead
from builder.planner.requests import deployment, engine_request
from builder.planner.speed import SpeedPlan
from builder.planner.stages import Digest, PlannedStage, plan_stages
from builder.spec import Pair, PairSpec

SCHEMA = 1
T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """Everything later stages use. `findings` holds every error and warning; a plan with errors has no stages."""

    pair: Pair
    findings: tuple[Finding, ...]
    target: Checkpoint | None = None
    draft: Checkpoint | None = None
    requests: tuple[EngineRequest, ...] = ()
    outlook: Outlook = field(default_factory=Outlook)
    stages: tuple[PlannedStage, ...] = ()

    @property
    def ok(self) -> bool:
        return not any(f.severity == "error" for f in self.findings)

    @property
    def goal_is_stated(self) -> bool:
        return goal_is_stated(self.pair.spec.planning.goal)

    @property
    def checkpoints(self) -> Mapping[Role, Checkpoint]:
        """Those that could be read."""
        found: dict[Role, Checkpoint | None] = {"target": self.target, "draft": self.draft}
        return {role: checkpoint for role, checkpoint in found.items() if checkpoint is not None}

    @property
    def memory(self) -> MemoryPlan | None:
        return self.outlook.memory

    @property
    def speed(self) -> SpeedPlan | None:
        return self.outlook.speed

    @property
    def build_needs(self) -> tuple[BuildNeeds, ...]:
        """What building each engine takes, the target first."""
        return self.outlook.memory.build_steps if self.outlook.memory else ()

    @property
    def cost(self) -> CostPlan | None:
        return self.outlook.cost

    def as_dict(self) -> dict[str, Any]:
        """The object that `tandem plan --json` prints, schema 1."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "name": self.pair.spec.name,
            "findings": [f.as_dict() for f in self.findings],
            "checkpoints": {role: _described(checkpoint) for role, checkpoint in self.checkpoints.items()},
            **self.outlook.as_dict(),
            "stages": [s.as_dict() for s in self.stages],
            "pair": self.pair.spec.model_dump(mode="json"),
        }


@dataclass(frozen=True)
class PlanContext:
    """What a plan may ask for: lanes by name, checkpoints by path or hub id, digests of their content.

    `location` is the folder that the deployment will lie in: the model repository names its engines by absolute path. `folders` are
    checkpoints that are already found.
    """

    load_engine: Callable[[str], Engine]
    location: Path
    digest: Digest
    access: ModelAccess = field(default_factory=ModelAccess)
    read: Callable[[Path, str], Checkpoint] = read_checkpoint
    read_tokenizer: Callable[[Path, Tokenizer | None], Tokenizer] = read_tokenizer
    folders: Mapping[Role, Path] = field(default_factory=dict)


def make_plan(pair: Pair, context: PlanContext) -> Plan:
    """Read both checkpoints, check the pair, predict, decide the stages. Refusals become findings; all are returned at once."""
    collected = _Findings(pair)
    spec = pair.spec
    engine = collected.of(lambda: context.load_engine(spec.engine.kind))
    chip = collected.of(lambda: find_chip(spec.hardware.chip))
    target = collected.of(lambda: _read(pair, "target", context))
    draft = collected.of(lambda: _read(pair, "draft", context)) if spec.has_draft_model else None
    checkpoints = [c for c in (target, draft) if c is not None]
    for checkpoint in checkpoints:
        collected.add(checkpoint.findings)
    if target is None or (draft is None and spec.has_draft_model):
        return Plan(pair, collected.all, target, draft)
    collected.add(check_pair(pair, target, draft, context.read_tokenizer))
    if engine is None or chip is None:
        return Plan(pair, collected.all, target, draft)
    requests = _requests(spec, checkpoints)
    outlook = _judge(pair, engine, chip, requests, checkpoints, collected)
    if collected.refused:
        return Plan(pair, collected.all, target, draft, requests, outlook)
    plan_only = any(finding.code == PLAN_ONLY for finding in collected.all)
    digest: Digest = (lambda _folder: None) if plan_only else context.digest
    stages = plan_stages(spec, engine, requests, context.location, digest)
    return Plan(pair, collected.all, target, draft, requests, outlook, stages)


def _judge(
    pair: Pair,
    engine: Engine,
    chip: Chip,
    requests: tuple[EngineRequest, ...],
    checkpoints: list[Checkpoint],
    collected: "_Findings",
) -> Outlook:
    """The lane's refusals, then memory, speed and cost: for a refused pair too, as long as its words have a meaning."""
    models = tuple(zip(requests, (c.facts for c in checkpoints), strict=True))
    known = collected.add(finding for request in requests for finding in engine.check(request))
    collected.add(engine.check_deployment(deployment(pair.spec, chip, models)))
    if not known:
        return Outlook()
    outlook = look_ahead(pair, engine, chip, models)
    collected.add(outlook.findings)
    return outlook


def _requests(spec: PairSpec, checkpoints: list[Checkpoint]) -> tuple[EngineRequest, ...]:
    roles: tuple[Role, Role] = ("target", "draft")
    return tuple(engine_request(spec, role, checkpoint.path) for role, checkpoint in zip(roles, checkpoints, strict=False))


def _read(pair: Pair, role: Role, context: PlanContext) -> Checkpoint:
    name = pair.spec.target.checkpoint if role == "target" else pair.spec.draft.checkpoint
    assert name is not None
    path = context.folders.get(role) or locate_checkpoint(name, pair.file.parent, role, context.access)
    return context.read(path, f"{role}.checkpoint")


class _Findings:
    """Findings so far, each with the pair file's line of its field."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._found: list[Finding] = []

    @property
    def all(self) -> tuple[Finding, ...]:
        """What is said twice is told once: repeats, and a warning beside an error of the same field, value and need."""
        once = {(f.code, f.field, f.message): f for f in reversed(self._found)}.values()
        refused = {(f.field, f.found, f.needed) for f in once if f.severity == "error" and f.needed}
        return tuple(f for f in reversed(once) if f.severity == "error" or (f.field, f.found, f.needed) not in refused)

    @property
    def refused(self) -> bool:
        return any(f.severity == "error" for f in self._found)

    def add(self, findings: Iterable[Finding]) -> bool:
        """Keep findings; whether none of them refuses."""
        new = [_located(self._pair, finding) for finding in findings]
        self._found += new
        return not any(f.severity == "error" for f in new)

    def of(self, read: Callable[[], T]) -> T | None:
        """The result, or None and the refusals kept."""
        try:
            return read()
        except TandemError as error:
            self.add(error.findings)
            return None


def _located(pair: Pair, finding: Finding) -> Finding:
    """With file, line and field in front of the sentence, when the field is one of the pair file."""
    if finding.line or finding.field.split(".")[0] not in PairSpec.model_fields:
        return finding
    line = pair.line(finding.field)
    sentence = finding.message.removeprefix(f"{finding.field}: ")
    message = f"{pair.shown}:{line}: {finding.field}: {sentence}"
    return dataclasses.replace(finding, message=message, file=finding.file or str(pair.file), line=line)


def _described(checkpoint: Checkpoint) -> dict[str, Any]:
    """Where a checkpoint is from, a hub's with the commit it is pinned to, and what it is."""
    source = hub_source(checkpoint.path)
    hub = {"hub_id": source.id, "commit": source.commit} if source else {}
    shape, stored = checkpoint.shape, checkpoint.stored
    stores = {"kind": stored.kind, "weights": stored.weights, "kv_cache": stored.kv_cache}
    return {"path": str(checkpoint.path), **hub, "model_type": checkpoint.model_type, "parameters": shape.parameters, "stored": stores}
