"""The page: every part from samples made by hand, and where it is written."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from builder.bench.markdown import BEGIN, END, render, write_page
from builder.bench.measure import EngineWork, Run
from builder.bench.report import BenchReport, BenchSettings, make_report
from builder.bench.systems import CONCURRENT, SINGLE
from builder.errors import MissingError, StageError


@pytest.fixture
def report(made: SimpleNamespace) -> BenchReport:
    """Two kinds, three repeats; one peer measured, one absent, one broken."""
    run = Run(failures={"llama_cpp": StageError("BENCH-PEER-DIED", "llama_cpp ended with signal 9", last_lines=("killed",))})
    work = EngineWork(10, 0.001, 0.1, rounds=5, drafted_tokens=8, accepted_tokens=6, lookup_drafted_tokens=3, lookup_accepted_tokens=2)
    for repeat in range(3):
        for kind in ("chat", "code"):
            prompt = made.prompt(kind, kind)
            run.samples += [
                made.sample("tandem/plain", [prompt], 1.0 + repeat, repeat=repeat, work=work),
                made.sample("tandem/draft_lookup", [prompt], 0.5, repeat=repeat, work=work),
                made.sample("transformers/plain", [prompt], 5.0, repeat=repeat, first=3),
            ]
        run.samples.append(made.sample("tandem/plain", [made.prompt("a"), made.prompt("b")], 0.5, repeat=repeat))
    absent = {"openvino_genai": MissingError("PEER-NOT-INSTALLED", "openvino_genai: not there", fix="make bench-peers")}
    return make_report(
        run,
        absent,
        name="demo",
        settings=BenchSettings(repeats=3, concurrency=2),
        single=SINGLE,
        concurrent=CONCURRENT,
        facts={"tandem": {"openvino": "1.2"}},
        machine={"cpu": "a processor"},
        command="tandem bench engine pair.yaml",
        created_at="2026-01-02",
    )


def test_page_shows_comparisons_systems_kinds_and_how_to_repeat(report: BenchReport) -> None:
    page = render(report)
    assert "| Tandem, target only | transformers bf16 `generate` | mix | 2.50x (1.67 to 5.00) | 3x | 4x | **missed** |" in page
    assert "| Tandem, draft model and lookup | Tandem, target only | mix | 4.00x (2.00 to 6.00) | 1.3x | 1.6x | aim reached |" in page
    assert "| Tandem, target only | OpenVINO GenAI int8, KV u8 | mix | - | 1x | 1.3x | not measured |" in page
    assert "| Tandem, Python outside the kernels, per decode step | - | mix | 0.10 ms (0.10 to 0.10) | at most 0.4 ms |" in page
    assert "| transformers bf16 `generate` | 2 (2 to 2) | 2 | 2 | 0 of 2 | 0 |" in page
    assert "| Tandem, draft model and lookup | 20 (20 to 20) | 20 | 20 | 2 of 2 | 10 |" in page
    assert "| 2 requests at once | tokens per second (least to greatest repeat) |" in page
    assert "| code | 4.00x (2.00 to 6.00) | 2.00 | 12 of 15 | 6 of 9 |" in page
    assert "- openvino_genai: not there: `make bench-peers`" in page
    assert "- llama_cpp ended with signal 9" in page
    assert "`tandem bench engine pair.yaml`, 2026-01-02: 2 prompts of 2 kinds" in page
    assert "| tandem | openvino: 1.2 |" in page
    assert "| cpu | a processor |" in page


def test_missed_lines_stand_out(made: SimpleNamespace, report: BenchReport) -> None:
    slow = [made.sample("tandem/lookup", [made.prompt("p")], 2.0), made.sample("tandem/plain", [made.prompt("p")], 1.0)]
    facts = {name: getattr(report, name) for name in ("name", "settings", "single", "concurrent", "facts", "machine", "command")}
    missed = make_report(Run(samples=slow), {}, **facts)
    assert [row.over for row in missed.missed] == ["mix", "worst kind: chat"]
    assert "**missed**" in render(missed)


def test_json_holds_rows_samples_and_what_was_absent(report: BenchReport) -> None:
    whole = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    first = whole["rows"][0]
    assert (first["value"], first["result"]) == ({"median": 2.5, "least": 5 / 3, "greatest": 5.0}, "missed")
    assert len(whole["samples"]) == len(report.samples.all)
    assert whole["samples"][0]["work"]["passes"] == 10
    assert whole["absent"]["openvino_genai"]["code"] == "PEER-NOT-INSTALLED"
    assert whole["failed"] == ["llama_cpp"]
    assert whole["alike"]["transformers/plain"] == {"equal_first_tokens": 0, "equal_answers": 0, "answers": 2}
    assert whole["alike"]["tandem/draft_lookup"]["equal_answers"] == 2


def test_page_is_written_between_its_marks_or_as_the_file(report: BenchReport, tmp_path: Path) -> None:
    new = tmp_path / "new.md"
    write_page(report, new)
    whole = new.read_text()
    assert whole.startswith(BEGIN)
    assert whole.endswith(f"{END}\n")
    marked = tmp_path / "marked.md"
    marked.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\n## After\n")
    write_page(report, marked)
    text = marked.read_text()
    assert text.startswith(f"# Title\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\n## After\n")
    assert "old" not in text
    write_page(report, marked)
    assert marked.read_text() == text
