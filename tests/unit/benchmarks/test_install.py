"""`make bench-peers`: what is kept, what is done again, what a failure stops."""

import importlib.util
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
Write = Callable[..., Path]


class Commands:
    """Notes what would be run; `broken` is a word of a command that fails."""

    def __init__(self) -> None:
        self.made: list[list[str]] = []
        self.environments: list[dict[str, str]] = []
        self.broken = "nothing is broken"

    def run(self, command: list[str], *, check: bool, env: dict[str, str] | None = None, **_: Any) -> None:
        assert check
        self.made.append(command)
        self.environments.append(env or {})
        if any(self.broken in word for word in command):
            raise subprocess.CalledProcessError(1, command)

    def create(self, folder: Path, **_: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    noted = Commands()
    monkeypatch.setattr("subprocess.run", noted.run)
    monkeypatch.setattr("venv.create", noted.create)
    return noted


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, over two peers of which one has models to make."""
    spec = importlib.util.spec_from_file_location("install_peers", ROOT / "benchmarks" / "peers" / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("alpha", "beta"):
        folder = tmp_path / "peers" / name
        folder.mkdir(parents=True)
        (folder / "peer.py").touch()
        (folder / "requirements.txt").write_text(f"{name}==1\n")
    (tmp_path / "peers" / "beta" / "prepare.py").touch()
    (tmp_path / "peers" / "beta" / "build.env").write_text("CMAKE_ARGS=-DA=ON -DB=OFF\n")
    monkeypatch.setattr(module, "HERE", tmp_path / "peers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "MODELS", tmp_path / "build" / "peers")
    return module


@pytest.fixture
def pair_file(write_checkpoint: Write, tmp_path: Path) -> Path:
    file = tmp_path / "pair.yaml"
    file.write_text(f"name: demo\ntarget: {{checkpoint: {write_checkpoint('target')}}}\ndraft: {{method: ngram}}\n")
    return file


def test_everything_is_made_once(install: ModuleType, commands: Commands, pair_file: Path, tmp_path: Path) -> None:
    assert install.main([str(pair_file)]) == 0
    words = [" ".join(command) for command in commands.made]
    assert ["alpha/requirements.txt" in words[0], "beta/requirements.txt" in words[1], "beta/prepare.py" in words[2]] == [True] * 3
    assert commands.made[2][-3:] == [str(tmp_path / "target"), "", str(tmp_path / "build" / "peers" / "beta")]
    assert commands.environments[1]["CMAKE_ARGS"] == "-DA=ON -DB=OFF"
    assert set(json.loads((tmp_path / "build" / "peers" / "alpha" / "source.json").read_text())) == {"target"}
    assert install.main([str(pair_file)]) == 0
    assert len(commands.made) == 3, "nothing was done again"


def test_changed_requirements_and_checkpoints_are_done_again(
    install: ModuleType, commands: Commands, pair_file: Path, tmp_path: Path
) -> None:
    install.main([str(pair_file)])
    commands.made.clear()
    (tmp_path / "peers" / "alpha" / "requirements.txt").write_text("alpha==2\n")
    config = tmp_path / "target" / "config.json"
    config.write_text(config.read_text() + "\n")
    assert install.main([str(pair_file)]) == 0
    assert ["requirements" in commands.made[0][-1], "prepare.py" in commands.made[1][3]] == [True, True]


def test_a_peer_that_fails_stops_no_other_and_is_tried_again(
    install: ModuleType, commands: Commands, pair_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands.broken = "alpha/requirements.txt"
    assert install.main([str(pair_file)]) == 1
    assert "failed: alpha" in capsys.readouterr().out
    assert "beta/prepare.py" in commands.made[-1][3]
    commands.broken = "nothing is broken"
    commands.made.clear()
    assert install.main([str(pair_file), "alpha"]) == 0
    assert len(commands.made) == 1
