"""`tandem run` on the built pair with small gates: what machines read, exit codes, reuse, and a deployment without a draft model."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from builder.cli.main import main

pytestmark = pytest.mark.functional
ROOT = Path(__file__).parents[2]
SMALL_GATES = {
    "lossless": {"prompts": 3, "tokens": 12},
    "accuracy": {"text_tokens": 256, "window_tokens": 128},
    "speed": {"prompts_per_kind": 1, "tokens": 12, "repeats": 1, "min_speedup_mix": 0.0, "min_speedup_kind": 0.0},
    "acceptance": {"min_rate": 0.0, "min_length": 1.0},
}


def write_pair(folder: Path, **changes: object) -> Path:
    """The default pair file with small gates and absolute checkpoints."""
    file = ROOT / "configs" / "pairs" / "smollm2-135m-cpu.yaml"
    data = yaml.safe_load(file.read_text()) | {"gates": SMALL_GATES} | changes
    for role in ("target", "draft"):
        if "checkpoint" in data[role]:
            data[role] = data[role] | {"checkpoint": str((file.parent / data[role]["checkpoint"]).resolve())}
    written = folder / "pair.yaml"
    written.write_text(yaml.safe_dump(data))
    return written


def run(file: Path, build_root: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object], str]:
    code = main(["run", str(file), "--json", "--build-root", str(build_root)])
    out, err = capfd.readouterr()
    return code, json.loads(out.strip().splitlines()[-1]), err


@pytest.fixture(scope="module")
def own_build(demo_pair_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the built pair: engines are reused there, the package belongs to its place and is written anew."""
    copy = tmp_path_factory.mktemp("build") / demo_pair_build.name
    return Path(shutil.copytree(demo_pair_build, copy))


def test_run_reuses_what_is_built_and_writes_every_report(own_build: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, verdict, progress = run(write_pair(tmp_path), own_build.parent, capfd)
    assert code == 0, verdict
    assert verdict["verdict"] == "pass"
    assert [g["name"] for g in verdict["gates"]] == ["lossless", "accuracy", "speed", "acceptance"]  # type: ignore[attr-defined]
    assert progress.count("reused (same inputs") == 2
    assert "changed: location" in progress
    report = json.loads((own_build / "report.json").read_text())
    assert report["verdict"] == "pass"
    assert set(report["kinds"]) == {"explain", "summarise", "code", "extract", "rewrite", "chat"}
    assert (own_build / "report.md").read_text().startswith("# smollm2-135m-cpu: pass")
    manifest = json.loads((own_build / "manifest.json").read_text())
    assert {"engines/target/model.bin", "model_repository/tensorrt_llm_bls/config.pbtxt"} <= set(manifest["files"])
    assert not [name for name in manifest["files"] if "__pycache__" in name]


def test_gate_that_fails_gives_exit_code_1_and_its_numbers(own_build: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gates = SMALL_GATES | {
        "speed": SMALL_GATES["speed"] | {"min_speedup_mix": 100.0},
        "accuracy": SMALL_GATES["accuracy"] | {"max_mean_kl": 0.0},
    }
    code, verdict, _ = run(write_pair(tmp_path, gates=gates), own_build.parent, capfd)
    assert code == 1
    assert [g["name"] for g in verdict["gates"] if not g["passed"]] == ["accuracy", "speed"]  # type: ignore[attr-defined]
    suite = ElementTree.fromstring((own_build / "junit.xml").read_text())
    assert [c.get("name") for c in suite.iter("testcase") if c.find("failure") is not None] == ["accuracy", "speed"]


def test_lookup_alone_needs_no_draft_model(own_build: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The pair file with draft.method ngram, in the same folder: the target's engine is reused, the repository has no draft model."""
    longer = {"lossless": {"prompts": 6, "tokens": 48}, "speed": SMALL_GATES["speed"] | {"tokens": 48}}
    file = write_pair(tmp_path, draft={"method": "ngram"}, gates=SMALL_GATES | longer)
    code, verdict, progress = run(file, own_build.parent, capfd)
    assert code == 0, verdict
    assert "build-target: reused" in progress
    repository = own_build / "model_repository"
    assert not (repository / "tensorrt_llm_draft").exists()
    assert (repository / "tensorrt_llm").exists()
