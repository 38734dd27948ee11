"""`tandem explain`: one code, all codes, the page, and what it refuses."""

import json

import pytest

from builder.cli.main import main
from builder.error_codes import codes_as_markdown, error_codes


def test_one_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "report-missing"]) == 0
    assert capsys.readouterr().out == (
        "REPORT-MISSING (Gates)\n"
        "  meaning: The pair was not judged yet, so there is no report.\n"
        "  way out: Run `tandem validate` on the pair file.\n"
    )


def test_all_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(code in out for code in error_codes())


def test_unknown_code_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "REPORT-MISSNG"]) == 2
    error = capsys.readouterr().err
    assert "[EXPLAIN-UNKNOWN] no error has the code REPORT-MISSNG; did you mean REPORT-MISSING?" in error
    assert "tandem explain REPORT-MISSING" in error


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "DISK-FULL", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["schema"] == 1
    assert [row["code"] for row in answer["codes"]] == ["DISK-FULL"]
    assert set(answer["codes"][0]) == {"code", "group", "meaning", "way_out"}


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--markdown"]) == 0
    assert capsys.readouterr().out == codes_as_markdown()


@pytest.mark.parametrize("other", ["DISK-FULL", "--json"])
def test_the_page_is_the_whole_list(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--markdown", other]) == 2
    assert f"[EXPLAIN-BOTH] --markdown prints the whole list, {other} asks for something else" in capsys.readouterr().err
