"""Building in a worker process: progress, errors with their codes, workers that die, interruptions; the lane is made for the test."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from builder.api import EngineRequest
from builder.errors import MissingError, StageError, TandemError
from builder.pipeline.build import BuildJob, build_engine

MODULE = """\
import errno, os, time
from builder.api import API_VERSION, MissingError, RefusedError, StageError

class Engine:
    kind, api_version = "scripted", API_VERSION
    def build(self, request, destination, progress):
        progress("working", 0.5)
        print("a tool speaks")
        getattr(self, request.weights)(destination)
    def good(self, destination):
        (destination / "config.json").write_text("{}")
    def stage(self, destination):
        raise StageError("ENGINE-BUILD", "no luck", fix="try again")
    def missing(self, destination):
        raise MissingError("DISK-FULL", "full", found="0", needed="1")
    def bug(self, destination):
        raise ZeroDivisionError("a bug")
    def killed(self, destination):
        os.kill(os.getpid(), 9)
    def slow(self, destination):
        (destination / "pid").write_text(str(os.getpid()))
        time.sleep(60)

ENGINE = Engine()
"""


@pytest.fixture(autouse=True)
def scripted_lane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    (site / "scripted-1.0.dist-info").mkdir(parents=True)
    (site / "scripted-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1.0\n")
    (site / "scripted-1.0.dist-info" / "entry_points.txt").write_text("[tandem.engines]\nscripted = scripted_lane:ENGINE\n")
    (site / "scripted_lane.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(site))


def job(tmp_path: Path, behaviour: str) -> BuildJob:
    destination = tmp_path / "engine"
    destination.mkdir()
    return BuildJob("scripted", EngineRequest("target", tmp_path, behaviour, "auto", 32, 1, 8, 16, 16, 0, {"a": 1}), destination)


def test_engine_is_built_and_the_tools_words_go_to_the_log(tmp_path: Path) -> None:
    said: list[tuple[str, float | None]] = []
    peak_bytes = build_engine(job(tmp_path, "good"), tmp_path / "logs" / "build.log", lambda text, share: said.append((text, share)))
    assert (tmp_path / "engine" / "config.json").is_file()
    assert said == [("working", 0.5)]
    assert (tmp_path / "logs" / "build.log").read_text() == "a tool speaks\n"
    assert 5e6 < peak_bytes < 1e9


@pytest.mark.parametrize(
    ("behaviour", "kind", "code"),
    [
        ("stage", StageError, "ENGINE-BUILD"),
        ("missing", MissingError, "DISK-FULL"),
        ("bug", StageError, "BUILD-DIED"),
        ("killed", StageError, "BUILD-DIED"),
    ],
)
def test_failures_keep_code_log_and_last_lines(tmp_path: Path, behaviour: str, kind: type[TandemError], code: str) -> None:
    log = tmp_path / "build.log"
    with pytest.raises(kind) as caught:
        build_engine(job(tmp_path, behaviour), log, lambda _text, _share: None)
    assert caught.value.finding.code == code
    if isinstance(caught.value, StageError):
        assert caught.value.log == str(log)
    if behaviour == "bug":
        assert isinstance(caught.value, StageError)
        assert "ZeroDivisionError: a bug" in caught.value.last_lines[-1]
    if behaviour == "killed":
        assert caught.value.finding.found == "signal 9"


def test_interruption_ends_the_worker(tmp_path: Path) -> None:
    def interrupt() -> None:
        while not (tmp_path / "engine" / "pid").exists():
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    slow = job(tmp_path, "slow")
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        build_engine(slow, tmp_path / "build.log", lambda _text, _share: None)
    pid = int((tmp_path / "engine" / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
