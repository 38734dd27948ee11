"""One pair file at work: its plan and its folder."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from builder import registry
from builder.errors import FindingsError, RefusedError
from builder.pipeline.workspace import Workspace
from builder.planner import Plan, make_plan
from builder.spec import load_pair


@dataclass(frozen=True)
class Session:
    """A plan and the workspace it fills."""

    plan: Plan
    workspace: Workspace

    @classmethod
    def open(cls, config: Path, build_root: Path) -> "Session":
        """Read, check and plan a pair file. Raises RefusedError when the file itself is refused; other refusals are in the plan."""
        pair = load_pair(config)
        root = build_root.resolve() / pair.spec.name
        plan = make_plan(pair, registry.engine, location=root, digest_cache=build_root.resolve() / ".digests.json")
        return cls(plan, Workspace(root))

    def require_ok(self) -> None:
        """Raises FindingsError with every finding when the plan has an error."""
        if not self.plan.ok:
            raise FindingsError(self.plan.findings)

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
