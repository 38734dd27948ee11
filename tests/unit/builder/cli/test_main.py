"""The command line: fast help, exit codes, errors without tracebacks, no heavy imports."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.cli.main import VERBS, main

Write = Callable[..., Path]
HEAVY = ("torch", "transformers", "openvino", "nncf", "tritonclient", "numpy")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    text = capsys.readouterr().out
    if verb != "demo":
        assert "Example: tandem" in " ".join(text.split())


def test_unknown_verb_and_option_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bild"]) == 2
    assert main(["plan", "--nope"]) == 2
    assert "Usage" in capsys.readouterr().err


def test_refusals_are_shown_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "none.yaml"]) == 2
    error = capsys.readouterr().err
    assert "[PAIR-FILE-MISSING] there is no pair file none.yaml" in error
    assert "Traceback" not in error


def pair_file(write_checkpoint: Write, tmp_path: Path) -> Path:
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    file = tmp_path / "pair.yaml"
    file.write_text(f"name: demo\ntarget: {{checkpoint: {target}}}\ndraft: {{checkpoint: {draft}}}\n")
    return file


def test_plan_json(write_checkpoint: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    assert main(["plan", str(file), "--json", "--build-root", str(tmp_path / "build")]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["ok"]
    assert [s["reused"] for s in plan["stages"]] == [False, False, False]
    assert plan["memory"]["target"]["pool_tokens"] == plan["memory"]["draft"]["pool_tokens"]


def test_plan_imports_nothing_heavy(write_checkpoint: Write, tmp_path: Path) -> None:
    """The core alone plans: heavy packages are made unimportable, as in an environment that lacks them."""
    file = pair_file(write_checkpoint, tmp_path)
    script = (
        f"import sys\nfor name in {HEAVY!r}: sys.modules[name] = None\n"
        f"from builder.cli.main import main\nsys.exit(main(['plan', {str(file)!r}, '--build-root', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "build-target" in done.stdout


def test_build_without_packages_says_what_to_install(write_checkpoint: Write, tmp_path: Path) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    script = (
        "import sys\nfrom builder import registry\nengine = registry.engine('openvino')\n"
        "engine.missing_packages = lambda: ['nncf', 'openvino']\nregistry.engine = lambda _kind: engine\n"
        f"from builder.cli.main import main\nsys.exit(main(['-q', 'build', {str(file)!r}, '--build-root', {str(tmp_path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "[PACKAGE-MISSING]" in done.stderr
    assert "pip install 'trt-tandem[openvino]'" in done.stderr


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Tandem pair file"


def test_run_asks_for_the_server_before_it_builds(write_checkpoint: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    assert main(["run", str(file), "--build-root", str(tmp_path / "build"), "--tritonserver", str(tmp_path / "none")]) == 3
    assert "[SERVER-NOT-FOUND]" in capsys.readouterr().err
    assert not (tmp_path / "build" / "demo").exists()


def test_verbs_without_their_packages_say_what_to_install() -> None:
    script = "import sys\nsys.modules['numpy'] = None\nfrom builder.cli.main import main\nsys.exit(main(['generate', 'hello']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert "[PACKAGE-MISSING] this verb needs the package numpy" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"], ["--sweep", "batch=1,4"], ["--help"]], ids=["table", "json", "sweep", "help"])
def test_reader_of_a_pipe_that_leaves_is_no_error(write_checkpoint: Write, tmp_path: Path, options: list[str]) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    command = f"{sys.executable} -m builder -q plan {file} --build-root {tmp_path} {' '.join(options)} | true"
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_closed_output_is_no_error(write_checkpoint: Write, tmp_path: Path) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    command = f"{sys.executable} -m builder -q plan {file} --build-root {tmp_path} --sweep batch=1,4 >&-"
    assert subprocess.run(["bash", "-c", command], capture_output=True, check=False).returncode == 0


def test_unexpected_error_is_no_failed_gate(write_checkpoint: Write, tmp_path: Path) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    script = (
        "import sys\nfrom builder.pipeline import session\nsession.make_plan = lambda *a, **k: 1 / 0\n"
        f"from builder.cli.main import main\nsys.exit(main(['plan', {str(file)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "ZeroDivisionError" in done.stderr


def test_validate_refuses_what_was_built_from_another_pair_file(
    write_checkpoint: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pair_file(write_checkpoint, tmp_path)
    for verb in ("validate", "serve"):
        assert main([verb, str(file), "--build-root", str(tmp_path / "build")]) == 2
        assert "[NOT-BUILT]" in capsys.readouterr().err
