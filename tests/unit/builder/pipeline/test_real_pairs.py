"""The real-world pairs of configs/pairs, planned from folders that have public checkpoints' configurations, shapes and shard sizes."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.cli.main import main
from tests.public_models import public_model

PAIRS = Path(__file__).parents[4] / "configs" / "pairs"
MODELS = (
    "meta-llama/Llama-3.1-405B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.2-1B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen2.5-72B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-1.7B",
)
GIB = 2**30


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for name in MODELS:
        public_model(folder, name)
    return folder


def plan(models: Path, capsys: pytest.CaptureFixture[str], file: Path) -> tuple[int, dict[str, Any]]:
    code = main(["plan", str(file), "--models", str(models), "--offline", "--build-root", str(models.parent / "build"), "--json"])
    return code, json.loads(capsys.readouterr().out)


# file, weights of the target per device in GiB (published sizes of 8- and 4-bit checkpoints), bytes of KV per token per device,
# speed-up at batch 1 with an acceptance of 0.7, warnings
EXPECTED = [
    ("llama-3.1-70b-1b-fp8-h200", (65, 70), (163_840, 32_768), (1.6, 2.3), {"MEM-BUILD-DEVICE"}),
    ("llama-3.1-70b-1b-fp8-h100x2", (32, 36), (81_920, 32_768), (1.4, 2.2), {"MEM-BUILD-DEVICE"}),
    ("llama-3.1-405b-8b-fp8-h200x8", (47, 53), (32_256, 131_072), (1.2, 1.8), {"MEM-BUILD-DEVICE"}),
    ("qwen3-32b-1.7b-fp8-h100", (30, 33), (131_072, 114_688), (1.3, 2.1), {"MEM-BUILD-DEVICE"}),
    ("qwen2.5-72b-7b-fp8-h200", (67, 72), (163_840, 57_344), (1.2, 2.0), {"MEM-BUILD-DEVICE"}),
    ("qwen2.5-72b-1.5b-fp8-h200", (67, 72), (163_840, 28_672), (1.5, 2.2), {"MEM-BUILD-DEVICE"}),
    (
        "llama-3.3-70b-1b-nvfp4-b200",
        (37, 46),
        (92_160, 9_216),
        (1.2, 2.2),
        {"MEM-BUILD-DEVICE", "RULE-DRAFT-KV", "SPEED-DISAGREE", "SPEED-UNVERIFIED"},
    ),
]


@pytest.mark.parametrize(("name", "weights_gib", "kv_bytes", "speedup", "warnings"), EXPECTED)
def test_real_pair_is_planned(
    models: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    weights_gib: tuple[int, int],
    kv_bytes: tuple[int, int],
    speedup: tuple[float, float],
    warnings: set[str],
) -> None:
    code, found = plan(models, capsys, PAIRS / f"{name}.yaml")
    assert code == 0
    assert found["ok"], found["findings"]
    assert {f["code"] for f in found["findings"] if f["severity"] == "warning"} <= warnings
    target, draft = found["memory"]["target"], found["memory"]["draft"]
    assert weights_gib[0] < target["weights_bytes"] / GIB < weights_gib[1]
    assert (target["kv_bytes_per_token"], draft["kv_bytes_per_token"]) == kv_bytes
    assert target["pool_tokens"] == draft["pool_tokens"] >= found["memory"]["needed_tokens"]
    device = found["memory"]["device"]
    assert device["used_bytes"] + device["reserve_bytes"] <= device["memory_bytes"]
    assert device["stranded_bytes"] < 0.01 * device["memory_bytes"]
    first = found["speed"]["rows"][0]
    assert first["batch"] == 1
    assert speedup[0] < first["speedup"] < speedup[1]
    assert [stage["name"] for stage in found["stages"]] == ["build-target", "build-draft", "package"]
    assert all(stage["key"] is None for stage in found["stages"]), "no weight may be read for a plan"


def test_lane_with_fixed_drafts_is_predicted_at_that_length(models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """speculation.adaptive is on by default; this lane cannot, so a draft that loses at 5 tokens is not predicted at one."""
    text = (PAIRS / "llama-3.1-70b-1b-fp8-h200.yaml").read_text()
    text = text.replace("kind: tensorrt_llm,", "kind: tensorrt_llm_pytorch,").replace("planning:", "planning:\n  acceptance: 0.3")
    file = tmp_path / "pair.yaml"
    file.write_text(text + "serve: {topology: single}\n")
    found = plan(models, capsys, file)[1]
    speed, codes = found["speed"], {f["code"]: f for f in found["findings"]}
    assert {row["draft_tokens"] for row in speed["rows"]} == {5}
    assert speed["rows"][0]["speedup"] < 1
    assert not speed["adaptive"]
    assert "RULE-FIXED-DRAFTS" in codes
    assert codes["SPEED-SHORTER-DRAFT"]["severity"] == "warning"
    assert "SPEED-STOP-BATCH" not in codes
    assert codes["SPEED-DRAFT-LOSES"]["fix"].startswith("set speculation.max_draft_tokens: ")


def test_padding_that_differs_is_said(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(models, capsys, PAIRS / "qwen2.5-72b-1.5b-fp8-h200.yaml")[1]
    (finding,) = [f for f in found["findings"] if f["code"] == "PAIR-VOCAB-PADDING"]
    assert finding["severity"] == "info"
    assert "151936 for the draft Qwen/Qwen2.5-1.5B-Instruct and 152064 for the target Qwen/Qwen2.5-72B-Instruct" in finding["message"]
    assert not [f for f in plan(models, capsys, PAIRS / "qwen2.5-72b-7b-fp8-h200.yaml")[1]["findings"] if "VOCAB" in f["code"]]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("h200_sxm", "a100_sxm"), "RULE-KV-CHIP"),
        (("count: 1", "count: 2"), "RULE-CHIPS-IDLE"),
        (("kv_cache: fp8", "kv_cache: int8"), "RULE-KV-INT8-REUSE"),
        (("h200_sxm", "h100_sxm"), "MEM-BATCH"),
        (('release: "1.2.1"', 'release: "1.9.0"'), "RULE-RELEASE-RANGE"),
    ],
)
def test_one_wrong_word_is_found(
    models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, change: tuple[str, str], code: str
) -> None:
    text = (PAIRS / "llama-3.1-70b-1b-fp8-h200.yaml").read_text()
    assert change[0] in text
    file = tmp_path / "pair.yaml"
    file.write_text(text.replace(*change))
    _, found = plan(models, capsys, file)
    assert code in {f["code"] for f in found["findings"]}, [(f["code"], f["message"]) for f in found["findings"]]
