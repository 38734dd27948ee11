"""The catalogue holds exactly the codes that the sources use, and its page is fresh."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from builder.error_codes import ErrorCode, by_group, codes_as_markdown, error_codes, find_code
from builder.errors import RefusedError

ROOT = Path(__file__).parents[3]
SOURCES = ("builder", "plugins", "triton_repo")
DATA = (*SOURCES, "configs")
CODE = re.compile(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)+")
NOT_CODES = {"UTF-8", "SHA-256", "SHA-1", "TF-IDF"}
"""Words of other standards that are spelled like a code."""


def codes_in_python(source: str) -> set[str]:
    """Every string literal that is spelled like a code, wherever it stands: an argument, a constant, a row of a table."""
    strings = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in strings if CODE.fullmatch(text)} - NOT_CODES


def codes_in_data(value: object) -> Iterator[str]:
    """Values of keys named `code`, in rules that are data."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "code" and isinstance(inner, str):
                yield inner
            yield from codes_in_data(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from codes_in_data(inner)


def composed_codes(source: str) -> list[str]:
    """F-strings that begin like a code."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr) and isinstance(first := node.values[0], ast.Constant) and re.match(r"[A-Z]{2,}-", first.value):
            found.append(ast.unparse(node))
    return found


def files_of(folders: tuple[str, ...], pattern: str) -> list[Path]:
    return [file for folder in folders for file in sorted((ROOT / folder).rglob(pattern))]


def used() -> dict[str, str]:
    """Every code of the sources, with a file that uses it."""
    found: dict[str, str] = {}
    for file in files_of(SOURCES, "*.py"):
        found |= dict.fromkeys(codes_in_python(file.read_text()), str(file.relative_to(ROOT)))
    for file in files_of(DATA, "*.yaml"):
        if file.name != "error_codes.yaml":
            found |= dict.fromkeys(codes_in_data(yaml.safe_load(file.read_text())), str(file.relative_to(ROOT)))
    return found


def test_every_code_of_the_sources_is_in_the_catalogue() -> None:
    missing = sorted(f"{code} in {file}" for code, file in used().items() if code not in error_codes())
    assert not missing, f"add a meaning and a way out to builder/error_codes.yaml: {', '.join(missing)}"


def test_every_entry_of_the_catalogue_is_used() -> None:
    unused = sorted(error_codes().keys() - used().keys())
    assert not unused, f"no source has these codes, remove them from builder/error_codes.yaml: {', '.join(unused)}"


def test_every_prefix_has_a_title() -> None:
    assert not {row.code for row in error_codes().values() if row.group == row.code.split("-")[0]}, "add PREFIX: Title"


def test_codes_are_written_whole() -> None:
    """A code put together from parts cannot be found by searching for it."""
    assert not {str(file): found for file in files_of(SOURCES, "*.py") if (found := composed_codes(file.read_text()))}


def test_the_scan_sees_codes_wherever_they_stand() -> None:
    codes = 'A = "PAIR-A"\nraise RefusedError("PAIR-B", "x")\nT = {"k": ("PAIR-C", 1)}\nFinding(code="PAIR-D")\n'
    source = codes + 'x = "PAIR-E is text"\ny = "UTF-8"\n'
    assert codes_in_python(source) == {"PAIR-A", "PAIR-B", "PAIR-C", "PAIR-D"}
    assert set(codes_in_data({"rules": [{"code": "RULE-A", "text": "RULE-B"}]})) == {"RULE-A"}
    assert composed_codes('x = f"PAIR-{kind}"\ny = f"{n} tokens"\n') == ["f'PAIR-{kind}'"]


def test_the_file_is_sorted_and_no_key_stands_twice() -> None:
    text = (ROOT / "builder" / "error_codes.yaml").read_text()
    keys = [line.split(":")[0] for line in text.splitlines() if line and line[0] not in " #"]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("row", error_codes().values(), ids=lambda row: row.code)
def test_a_row_is_two_sentences(row: ErrorCode) -> None:
    for sentence in (row.meaning, row.way_out):
        assert sentence.endswith(".")
        assert "\n" not in sentence


def test_the_page_is_fresh() -> None:
    assert (ROOT / "docs" / "errors.md").read_text() == codes_as_markdown(), "run: make errors"


def test_prefixes_of_one_title_share_a_table() -> None:
    codes = {title: [row.code for row in rows] for title, rows in by_group()}
    assert {"BUILD-LOCKED", "DISK-FULL", "STAGE-IO"} <= set(codes["Building"])
    assert list(codes) == sorted(codes)
    assert sum(map(len, codes.values())) == len(error_codes())


def test_a_code_is_found_in_either_case() -> None:
    assert find_code("pair-yaml").code == "PAIR-YAML"


def test_an_unknown_code_names_the_nearest() -> None:
    with pytest.raises(RefusedError) as error:
        find_code("PAIR-VOCAB-SIZES")
    assert str(error.value) == "no error has the code PAIR-VOCAB-SIZES; did you mean PAIR-VOCAB-SIZE?"
    assert error.value.finding.fix == "tandem explain PAIR-VOCAB-SIZE"


def test_a_code_near_none_says_whose_it_may_be() -> None:
    with pytest.raises(RefusedError, match="no error has the code ÄÖ; a plug-in from elsewhere has codes of its own"):
        find_code("ÄÖ")
