"""Workspaces: nothing half-written is ever visible, one run at a time, reuse with reasons."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from builder.errors import MissingError, RefusedError, StageError
from builder.pipeline.workspace import Workspace
from builder.planner.stages import PlannedStage

STAGE = PlannedStage("build-target", "key", {"weights": "int8", "versions": {"tool": "1"}}, "engines/target")


def write_engine(folder: Path) -> None:
    (folder / "rank0.engine").write_text("engine")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "demo")


def test_result_is_reused_until_key_or_files_change(workspace: Workspace) -> None:
    assert workspace.reuse(STAGE, verify=True).reason == "not built yet"
    workspace.fill(STAGE, write_engine, "today")
    assert workspace.reuse(STAGE, verify=True).hit
    other = PlannedStage(STAGE.name, "other", {"weights": "int4", "versions": {"tool": "2"}}, STAGE.output)
    assert workspace.reuse(other, verify=True).reason == "changed: versions.tool, weights"
    (workspace.path(STAGE.output) / "rank0.engine").write_text("damage")
    assert workspace.reuse(STAGE, verify=False).hit
    assert workspace.reuse(STAGE, verify=True).reason == "engines/target/rank0.engine is missing or was changed"


@pytest.mark.parametrize("error", [OSError(errno.EIO, "no luck"), KeyboardInterrupt(), StageError("X", "x")])
def test_failure_leaves_the_old_result_and_no_staging(workspace: Workspace, error: BaseException) -> None:
    workspace.fill(STAGE, write_engine, "today")

    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise error

    with pytest.raises((StageError, KeyboardInterrupt)):
        workspace.fill(STAGE, fail, "later")
    assert workspace.reuse(STAGE, verify=True).hit
    assert [f.name for f in workspace.path("engines").iterdir()] == ["target"]


def test_full_disk_is_named(workspace: Workspace) -> None:
    def fail(_folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(MissingError, match="no space left while build-target wrote") as caught:
        workspace.fill(STAGE, fail, "today")
    assert caught.value.finding.code == "DISK-FULL"
    assert not workspace.path(STAGE.output).exists()


def test_second_run_is_refused_and_a_dead_holder_is_not_in_the_way(workspace: Workspace) -> None:
    with workspace.locked(), pytest.raises(RefusedError, match="another run") as caught, Workspace(workspace.root).locked():
        pass
    assert caught.value.finding.code == "BUILD-LOCKED"
    script = (
        "import os, sys; from pathlib import Path; from builder.pipeline.workspace import Workspace\n"
        "lock = Workspace(Path(sys.argv[1])).locked(); lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(workspace.root)], check=False).returncode == -9
    with workspace.locked():
        pass


def test_leftovers_of_a_killed_run_are_cleared(workspace: Workspace) -> None:
    leftover = workspace.path("engines/.staging-target-1")
    leftover.mkdir(parents=True)
    with workspace.locked():
        assert not leftover.exists()
