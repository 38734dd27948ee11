"""`tandem bench engine` on the demo pair, small and without peers."""

import json
from pathlib import Path

import pytest

from builder.cli.main import main

pytestmark = pytest.mark.functional
ROOT = Path(__file__).parents[2]
PROMPTS = (
    {
        "id": "extract-1",
        "kind": "extract",
        "prompt": "Name the towns in this text: Ostrand and Hallby lie on the coast, Venn in the hills.",
    },
    {"id": "chat-1", "kind": "chat", "prompt": "Good morning! What should I cook today?"},
)


def test_every_mode_is_measured_and_speculation_changes_no_token(
    demo_pair_build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts, page = tmp_path / "prompts.jsonl", tmp_path / "page.md"
    prompts.write_text("\n".join(json.dumps(p) for p in PROMPTS))
    small = ["--prompts", str(prompts), "--repeats", "1", "--new-tokens", "24", "--concurrency", "3", "--peers", str(tmp_path)]
    config = ROOT / "configs" / "pairs" / "smollm2-135m-cpu.yaml"
    options = ["--build-root", str(demo_pair_build.parent), "--output", str(page), "--json", *small]
    assert main(["--quiet", "bench", "engine", str(config), *options]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    modes = ("plain", "lookup", "draft", "draft_lookup")
    alike = {key: like["equal_answers"] for key, like in report["alike"].items() if key.startswith("tandem/")}
    assert alike == {f"tandem/{mode}": 2 for mode in modes}
    work = {sample["system"]: sample["work"] for sample in report["samples"] if len(sample["prompts"]) == 1}
    assert work["tandem/plain"]["drafted_tokens"] == 0
    assert work["tandem/draft"]["drafted_tokens"] > work["tandem/draft"]["lookup_drafted_tokens"] == 0
    assert all(w["passes"] > 0 and 0 < w["python_s"] < w["step_s"] for w in work.values())
    measured = [row for row in report["rows"] if row["value"] is not None]
    assert len(measured) == 8, "speculation twice, all at once three times, one tuning against the other, Python's time and share"
    assert set(report["absent"]) == {"transformers", "openvino_genai", "llama_cpp"}
    assert "`make bench-peers`" in page.read_text()
