"""`tandem doctor`: what people see, and the exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from builder.cli.main import main


def test_the_default_lane_is_ready_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--build-root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line[0] != " "] == [
        "This machine",
        "To serve",
        "Lanes",
        "Extras",
        "The lane openvino builds here.",
    ]
    assert "plans here: yes; builds here: yes" in out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "--build-root", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 2


def test_unknown_lane(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--lane", "openvine"]) == 2
    assert "[PLUGIN-UNKNOWN]" in capsys.readouterr().err


def test_a_lane_that_lacks_packages_is_exit_code_3(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom builder import registry\nengine = registry.engine('openvino')\n"
        "engine.missing_packages = lambda: ['nncf']\nregistry.engine = lambda _kind: engine\n"
        f"from builder.cli.main import main\nsys.exit(main(['doctor', '--build-root', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "pip install 'trt-tandem[openvino]'" in done.stdout
    assert "The lane openvino cannot build here; tandem plan works for it anyway." in done.stdout
