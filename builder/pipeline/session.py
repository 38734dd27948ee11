"""One pair file at work: its plan and its folder."""

from dataclasses import dataclass
from pathlib import Path

from builder import registry
from builder.errors import FindingsError
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
        plan = make_plan(pair, registry.engine, build_root.resolve() / ".digests.json")
        return cls(plan, Workspace(build_root.resolve() / pair.spec.name))

    def require_ok(self) -> None:
        """Raises FindingsError with every finding when the plan has an error."""
        if not self.plan.ok:
            raise FindingsError(self.plan.findings)
