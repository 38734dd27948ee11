"""What the light verbs cost: no heavy package is imported, and planning stays small."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., Path]
HEAVY = (
    "aiconfigurator_core",
    "huggingface_hub",
    "matplotlib",
    "nncf",
    "numpy",
    "openvino",
    "pyarrow",
    "tensorrt_llm",
    "tokenizers",
    "torch",
    "transformers",
    "tritonclient",
)
MAX_PLAN_BYTES = 150_000_000
SCRIPT = f"""
import contextlib, io, json, re, sys
from builder.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
peak_kib = int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
print(json.dumps({{"code": code, "heavy": [name for name in {HEAVY!r} if name in sys.modules], "peak_bytes": peak_kib << 10}}))
"""


def run(*arguments: str) -> dict[str, object]:
    """Run a verb in a fresh process: its exit code, the heavy packages that it imported, and its peak of resident memory in bytes."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


@pytest.fixture
def pair(write_checkpoint: Write, write_pair: Callable[[str], Path]) -> Path:
    target, draft = write_checkpoint("target", layers=8), write_checkpoint("draft", layers=1)
    return write_pair(f"name: demo\nengine: {{kind: openvino}}\ntarget: {{checkpoint: {target}}}\ndraft: {{checkpoint: {draft}}}\n")


def test_the_measure_sees_a_heavy_package() -> None:
    script = SCRIPT.replace("import contextlib", "import numpy, contextlib", 1)
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["heavy"] == ["numpy"]


@pytest.mark.parametrize("verb", [("--help",), ("plan", "--help"), ("explain",), ("schema",), ("doctor",)], ids=" ".join)
def test_light_verbs_import_nothing_heavy(verb: tuple[str, ...]) -> None:
    found = run(*verb)
    assert (found["code"], found["heavy"]) == (0, [])


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["table", "json"])
def test_planning_imports_nothing_heavy_and_stays_small(pair: Path, tmp_path: Path, form: tuple[str, ...]) -> None:
    found = run("plan", str(pair), "--build-root", str(tmp_path / "build"), *form)
    assert (found["code"], found["heavy"]) == (0, [])
    assert found["peak_bytes"] < MAX_PLAN_BYTES
