"""The demo pair, built and packaged once; a real server on it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from builder import registry
from builder.cli.main import main
from builder.pipeline.session import Places, Session

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "configs" / "pairs" / "smollm2-135m-cpu.yaml"
BUILD_ROOT = ROOT / "build"


@pytest.fixture(scope="session")
def demo_checkpoints() -> Mapping[str, Path]:
    """Folders of target and draft; made when they are not there."""
    return registry.demo("smollm2-135m").fetch(ROOT / "checkpoints", lambda _text, _share: None)


@pytest.fixture(scope="session")
def demo_pair_build(demo_checkpoints: Mapping[str, Path]) -> Path:
    """Folder of the built and packaged demo pair; reused when nothing changed."""
    assert demo_checkpoints
    assert main(["--quiet", "package", str(CONFIG), "--build-root", str(BUILD_ROOT)]) == 0
    return BUILD_ROOT / "smollm2-135m-cpu"


@pytest.fixture(scope="session")
def demo_session(demo_pair_build: Path) -> Session:
    """The plan and workspace of the built demo pair."""
    return Session.open(CONFIG, Places(demo_pair_build.parent))
