"""One pair file at work: its plan and its folder."""

import dataclasses
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from builder import registry
from builder.api import PLAN_ONLY, Progress
from builder.checkpoint import ModelAccess, digest_folder, fetch_checkpoint, holds_headers_only, known_digest, read_checkpoint
from builder.checkpoint.tokenizer import Tokenizer, read_tokenizer
from builder.errors import FindingsError, RefusedError
from builder.pipeline.workspace import Workspace
from builder.planner import Plan, PlanContext, make_plan
from builder.planner.cost import HardwareAdvice
from builder.planner.sweep import smallest_hardware
from builder.spec import Pair, load_pair


@dataclass(frozen=True)
class Places:
    """The folder of all deployments, a folder of checkpoints by hub id, and whether the hub must not be asked."""

    build_root: Path
    models: Path | None = None
    offline: bool = False


@dataclass(frozen=True)
class Session:
    """A plan and the workspace it fills."""

    plan: Plan
    workspace: Workspace

    @classmethod
    def open(cls, config: Path, places: Places, *, hash_weights: bool = True) -> "Session":
        """Read, check and plan a pair file. Raises RefusedError when the file itself is refused; other refusals are in the plan.

        Without `hash_weights` large checkpoints are not read for their digest, and stages that hang on an unknown one have no key. With it
        a hub's checkpoints are fetched whole, once the plan stands.
        """
        pair = load_pair(config)
        root = places.build_root.resolve() / pair.spec.name
        context = session_context(places, root, hash_weights=hash_weights)
        plan = make_plan(pair, context)
        if hash_weights and plan.ok and any(holds_headers_only(c.path) for c in plan.checkpoints.values()):
            folders = {role: fetch_checkpoint(c.path, role, context.access) for role, c in plan.checkpoints.items()}
            plan = make_plan(pair, dataclasses.replace(context, folders=folders))
        return cls(plan, Workspace(root))

    def smallest_hardware(self, places: Places, progress: Progress = lambda _text, _share: None) -> HardwareAdvice | None:
        """The fewest chips of each kind that meet the pair file's goal; None where none is stated, and for a refused pair."""
        plan = self.plan
        if not plan.ok or plan.speed is None or not plan.goal_is_stated:
            return None
        return smallest_hardware(plan.pair, plan_many(places, plan.pair), plan.memory, progress)

    def require_ok(self) -> None:
        """Raises FindingsError with every finding when the plan has an error, and when its lane is one that is planned only."""
        if not self.plan.ok:
            raise FindingsError(self.plan.findings)
        if only := [dataclasses.replace(f, severity="error") for f in self.plan.findings if f.code == PLAN_ONLY]:
            raise FindingsError(tuple(only))

    def require_built(self, names: Collection[str] = ()) -> None:
        """Raises RefusedError NOT-BUILT when what lies in the folder is not what the pair file asks for; `names` are the stages, () all."""
        for stage in self.plan.stages:
            if names and stage.name not in names:
                continue
            reuse = self.workspace.reuse(stage, verify=False)
            if not reuse.hit:
                raise RefusedError(
                    "NOT-BUILT",
                    f"{self.workspace.root} does not hold what {self.plan.pair.file.name} asks for: {stage.name}: {reuse.reason}",
                    found=reuse.reason,
                    needed=f"{stage.output} of this pair file",
                    fix=f"tandem run {self.plan.pair.file.name}",
                )


def session_context(places: Places, location: Path, *, hash_weights: bool) -> PlanContext:
    """What a plan may ask for, with the installed lanes and these places."""
    cache = places.build_root.resolve() / ".digests.json"

    def digest(folder: Path) -> str | None:
        return digest_folder(folder, cache) if hash_weights and not holds_headers_only(folder) else known_digest(folder, cache)

    return PlanContext(registry.engine, location, digest, ModelAccess(places.models, offline=places.offline))


def plan_many(places: Places, pair: Pair) -> Callable[[Pair], Plan]:
    """Plans variants of a pair: what lies in its checkpoint folders is read once, and nothing is hashed."""
    context = session_context(places, places.build_root.resolve() / pair.spec.name, hash_weights=False)
    many = dataclasses.replace(
        context, read=functools.cache(read_checkpoint), read_tokenizer=_each_tokenizer_once(), digest=lambda _folder: None
    )
    return lambda variant: make_plan(variant, many)


def _each_tokenizer_once() -> Callable[[Path, Tokenizer | None], Tokenizer]:
    known: dict[Path, Tokenizer] = {}

    def read(folder: Path, like: Tokenizer | None = None) -> Tokenizer:
        if folder not in known:
            known[folder] = read_tokenizer(folder, like)
        return known[folder]

    return read
