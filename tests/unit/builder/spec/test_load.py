"""The pair file's reader: what it accepts, and the exact sentence of every refusal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builder.errors import Finding, RefusedError
from builder.spec import load_pair

WritePair = Callable[[str], Path]
GOOD = "name: demo\ntarget: {checkpoint: target}\ndraft: {checkpoint: draft}\n"


def refusals(file: Path) -> tuple[Finding, ...]:
    with pytest.raises(RefusedError) as caught:
        load_pair(file)
    return caught.value.findings


def test_defaults_and_relative_paths(write_pair: WritePair) -> None:
    file = write_pair(GOOD)
    pair = load_pair(file)
    assert pair.spec.speculation.max_draft_tokens == 5
    assert pair.line("target.checkpoint") == 2


def test_unknown_key_names_file_line_field_and_nearest(write_pair: WritePair) -> None:
    file = write_pair(GOOD + "limits:\n  max_batch_sise: 3\n")
    (finding,) = refusals(file)
    assert finding.code == "PAIR-UNKNOWN-KEY"
    assert finding.message == f"{file}:5: unknown key limits.max_batch_sise; did you mean max_batch_size?"
    assert finding.line == 5


def test_all_refusals_come_at_once(write_pair: WritePair) -> None:
    file = write_pair("name: demo\ntargett: {checkpoint: x}\ndraft: {method: none}\nspeculation: {max_draft_tokens: 0}\n")
    codes = [f.code for f in refusals(file)]
    assert codes == ["PAIR-MISSING-KEY", "PAIR-VALUE", "PAIR-UNKNOWN-KEY"]


def test_zero_draft_tokens_says_how_to_serve_the_target_alone(write_pair: WritePair) -> None:
    (finding,) = refusals(write_pair(GOOD + "speculation: {max_draft_tokens: 0}\n"))
    assert finding.field == "speculation.max_draft_tokens"
    assert finding.found == "0"
    assert finding.fix == "to serve the target alone set draft.method: none"


def test_key_that_stands_twice(write_pair: WritePair) -> None:
    (finding,) = refusals(write_pair(GOOD + "name: other\n"))
    assert finding.code == "PAIR-DUPLICATE-KEY"
    assert finding.line == 4


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PAIR-YAML"),
        ("- a\n", "PAIR-YAML"),
        ("name: [\n", "PAIR-YAML"),
        (GOOD.replace("{checkpoint: draft}", "{method: draft_target}"), "PAIR-VALUE"),
        (GOOD.replace("{checkpoint: draft}", "{method: ngram, checkpoint: draft}"), "PAIR-VALUE"),
        (GOOD + "limits: {max_input_tokens: 4096}\n", "PAIR-VALUE"),
        (GOOD + "serve: {grpc_port: 8000}\n", "PAIR-VALUE"),
        (GOOD + "serve: {grpc_port: 70000}\n", "PAIR-VALUE"),
        (GOOD + "kv_cache: {reuse: false}\n", "PAIR-VALUE"),
        (GOOD + "gates: {lossless: {prompts: 31}}\n", "PAIR-VALUE"),
        (GOOD + "gates: {speed: {tokens: 2048}}\n", "PAIR-VALUE"),
        (GOOD + "gates: {accuracy: {text_tokens: 64}}\n", "PAIR-VALUE"),
        (GOOD + "gates: {accuracy: {window_tokens: 1600}}\n", "PAIR-VALUE"),
        (GOOD.replace("name: demo", "name: ../demo"), "PAIR-VALUE"),
        (GOOD.replace("target}", "target, weights: int9}"), "PAIR-VALUE"),
    ],
)
def test_refused_values(write_pair: WritePair, text: str, code: str) -> None:
    assert [f.code for f in refusals(write_pair(text))] == [code]


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    assert refusals(tmp_path / "none.yaml")[0].code == "PAIR-FILE-MISSING"
    assert refusals(tmp_path)[0].code == "PAIR-FILE-UNREADABLE"
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert refusals(tmp_path / "binary.yaml")[0].code == "PAIR-FILE-UNREADABLE"
