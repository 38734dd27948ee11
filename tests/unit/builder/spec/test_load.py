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


SENTENCES = {
    "engine: {release: 0.17}": ("engine.release must be text; found 0.17", 'write "0.17" in quotes'),
    "engine: {release: 1.10}": ("engine.release must be text; found 1.10", 'write "1.10" in quotes'),
    "engine: {options: {a: [1]}}": (
        "engine.options.a must be text, a number, or true or false; found a list",
        "set engine.options.a to text, a number, or true or false",
    ),
    "planning: {price: 3.60}": (
        "planning.price must be a mapping: {per_chip_hour: ..., date: ...}; found 3.60",
        "write price: {per_chip_hour: 3.60, date: ...}",
    ),
    "planning: {price: {per_chip_hour: 1, date: soon}}": (
        "planning.price.date must be a date, written as 2026-12-31; found soon",
        "set planning.price.date to a date, written as 2026-12-31",
    ),
    "planning: {price: {date: 2026-12-01}}": ("planning.price.per_chip_hour is missing", "add per_chip_hour to planning.price"),
    "planning: {price: {per_chip_hour: 1, date: 2026-12-01, currncy: EUR}}": (
        "unknown key planning.price.currncy; did you mean currency?",
        "rename it to currency",
    ),
    "planning: {acceptance: 1.0}": ("planning.acceptance must be less than 1; found 1.0", "set planning.acceptance to less than 1"),
    "planning: {measured: 3}": ("planning.measured must be a path, as text; found 3", "set planning.measured to a path, as text"),
    "speculation: {max_draft_tokens: 40}": (
        "speculation.max_draft_tokens must be 32 or less; found 40",
        "set speculation.max_draft_tokens to 32 or less",
    ),
    "speculation: {max_draft_tokens: 2.5}": (
        "speculation.max_draft_tokens must be a whole number; found 2.5",
        "set speculation.max_draft_tokens to a whole number",
    ),
    "speculation: {adaptive: maybe}": (
        "speculation.adaptive must be true or false; found maybe",
        "set speculation.adaptive to true or false",
    ),
    "speculation: {acceptance: Logit}": (
        "speculation.acceptance must be one of tokens, logits; found Logit; did you mean logits?",
        "set speculation.acceptance to logits",
    ),
    "limits:": ("limits must be a mapping: {max_batch_size: ...}; found nothing", "give limits a value, or leave it out"),
    "hardware: {count: 1025}": ("hardware.count must be 1024 or less; found 1025", "set hardware.count to 1024 or less"),
    "limits: {max_sequence_tokens: 1000000000000000000}": (
        "limits.max_sequence_tokens must be 100000000 or less; found 1000000000000000000",
        "set limits.max_sequence_tokens to 100000000 or less",
    ),
    "limits {a: 3}": ("unknown key limits {a; did you mean limits?", "put a colon and a space behind the key"),
    "7: a": ("7 must be a key of text; found a", 'write "7" in quotes'),
}


@pytest.mark.parametrize(("line", "expected"), SENTENCES.items(), ids=str)
def test_sentences_and_ways_out(write_pair: WritePair, line: str, expected: tuple[str, str]) -> None:
    file = write_pair(f"{GOOD}{line}\n")
    (finding,) = refusals(file)
    where = ": " if "unknown key" in expected[0] or "missing" in expected[0] else f": {finding.field} "
    assert finding.message.startswith(f"{file}:4{where}")
    assert (finding.message.removeprefix(f"{file}:4: "), finding.fix) == expected


@pytest.mark.parametrize("word", ["FP8", "Fp8", "fp-8", "fp88"])
def test_words_are_told_whatever_their_case(write_pair: WritePair, word: str) -> None:
    (finding,) = refusals(write_pair(GOOD.replace("target}", f"target, weights: {word}}}")))
    assert finding.message.endswith(
        f"target.weights must be one of none, fp8, nvfp4, int8, int4, int4_awq, int8_sq; found {word}; did you mean fp8?"
    )
    assert finding.fix == "set target.weights to fp8"


@pytest.mark.parametrize(
    ("section", "key", "most"),
    [
        ("hardware", "count", 1024),
        ("limits", "max_batch_size", 65_536),
        ("limits", "max_batched_tokens", 100_000_000),
        ("limits", "max_sequence_tokens", 100_000_000),
        ("kv_cache", "tokens_per_block", 65_536),
        ("serve", "max_concurrent_requests", 65_536),
    ],
)
def test_numbers_are_bounded(write_pair: WritePair, section: str, key: str, most: int) -> None:
    load_pair(write_pair(f"{GOOD}{section}: {{{key}: {most}}}\n"))
    (finding,) = refusals(write_pair(f"{GOOD}{section}: {{{key}: {most + 1}}}\n"))
    assert (finding.field, finding.needed) == (f"{section}.{key}", f"{most} or less")


def test_splits_are_bounded(write_pair: WritePair) -> None:
    text = GOOD.replace("target}", "target, tensor_parallel: 1025, pipeline_parallel: 1000000000000000000}")
    found = refusals(write_pair(text.replace("draft}", "draft, tensor_parallel: 1000000000}")))
    assert [f.field for f in found] == ["target.tensor_parallel", "target.pipeline_parallel", "draft.tensor_parallel"]
    assert {f.needed for f in found} == {"1024 or less"}


@pytest.mark.parametrize(
    ("text", "sentence", "fix"),
    [
        ("\tlimits: 3", ":4: found character '\\t' that cannot start any token", "indent with spaces: YAML takes no tabs"),
        ("limits: a: 3", ":4: mapping values are not allowed here", "put each key on a line of its own"),
        ("x: 'a", ":5: found unexpected end of stream", "close the quotes"),
        ("x: [", ":5: expected the node content", "correct the indentation, the brackets or the quotes"),
        ("d: 2026-99-99", " holds a value that YAML cannot take in: month must be in 1..12", "correct the date or the number"),
        ("n: " + "9" * 5000, " holds a value that YAML cannot take in: Exceeds the limit", "correct the date or the number"),
        ("n: " + "[" * 5000, " holds a value that YAML cannot take in: its values are nested too deeply", "correct"),
        ("n: &a [*a]", " holds a value that YAML cannot take in: its values are nested too deeply", "correct"),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_yaml(write_pair: WritePair, text: str, sentence: str, fix: str) -> None:
    file = write_pair(f"{GOOD}{text}\n")
    (finding,) = refusals(file)
    assert finding.code == "PAIR-YAML"
    assert finding.message.startswith(f"{file}{sentence}")
    assert finding.fix.startswith(fix)


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    (finding,) = refusals(tmp_path / "none.yaml")
    assert (finding.code, finding.fix) == ("PAIR-FILE-MISSING", "name a pair file; configs/pairs/ holds examples")
    (finding,) = refusals(tmp_path)
    assert (finding.code, finding.message) == ("PAIR-FILE-UNREADABLE", f"{tmp_path} is a folder")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (finding,) = refusals(tmp_path / "binary.yaml")
    assert (finding.code, finding.fix) == ("PAIR-FILE-UNREADABLE", "save it as UTF-8 text")
    for name, reason in (("a" * 300, "File name too long"), ("a\0b", "embedded null byte")):
        (finding,) = refusals(tmp_path / name)
        assert (finding.code, finding.found) == ("PAIR-FILE-UNREADABLE", reason)


def test_the_file_that_was_probably_meant(tmp_path: Path) -> None:
    for name in ("llama-h100.yaml", "qwen-l40s.yml", "notes.txt"):
        (tmp_path / name).write_text("")
    assert refusals(tmp_path / "lama-h100.yaml")[0].fix == f"did you mean {tmp_path / 'llama-h100.yaml'}?"
    assert refusals(tmp_path / "qwen-l40s.yaml")[0].fix == f"did you mean {tmp_path / 'qwen-l40s.yml'}?"
    assert refusals(tmp_path / "zzz")[0].fix == "name a pair file; configs/pairs/ holds examples"


def test_missing_sections_are_shown(write_pair: WritePair) -> None:
    assert [f.fix for f in refusals(write_pair("name: demo\n"))] == ["add target: {checkpoint: ...}", "add draft: {method: ...}"]
    assert refusals(write_pair(GOOD.replace("{checkpoint: target}", "models/x")))[0].fix == "write target: {checkpoint: models/x}"
