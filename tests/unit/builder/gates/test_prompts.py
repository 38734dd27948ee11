"""The shipped prompts and text, and files of the user's own."""

from collections import Counter
from pathlib import Path

import pytest

from builder.errors import RefusedError
from builder.gates.prompts import Prompt, load_prompts, load_text, spread_over_kinds, windows


def test_the_shipped_prompts_are_five_of_six_kinds() -> None:
    prompts = load_prompts()
    assert Counter(p.kind for p in prompts) == dict.fromkeys(["explain", "summarise", "code", "extract", "rewrite", "chat"], 5)
    assert len({p.text for p in prompts}) == 30


def test_the_shipped_text_is_long_enough() -> None:
    assert 9_000 <= len(load_text()) <= 12_000


def test_a_short_run_sees_every_kind() -> None:
    assert [p.id for p in spread_over_kinds(load_prompts(), 7)] == [
        "explain-1",
        "summarise-1",
        "code-1",
        "extract-1",
        "rewrite-1",
        "chat-1",
        "explain-2",
    ]
    assert len(spread_over_kinds(load_prompts(), 100)) == 30


def test_own_prompts(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"id": "a", "kind": "mail", "prompt": "Hello"}\n\n')
    assert load_prompts(file) == (Prompt("a", "mail", "Hello"),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"id": "a", "kind": "k", "prompt": "x"}\n{"id": "a"}\n', r"mine.jsonl:2: KeyError: 'kind'"),
        ("nonsense\n", r"mine.jsonl:1: JSONDecodeError"),
        ("[1]\n", r"mine.jsonl:1: TypeError"),
        ('{"id": "a", "kind": "k", "prompt": ""}\n', r"mine.jsonl:1: an empty member"),
        ('{"id": "a", "kind": "k", "prompt": "x"}\n' * 2, r"mine.jsonl: the id a twice"),
        ("", r"mine.jsonl: no prompts"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(content)
    with pytest.raises(RefusedError, match=message):
        load_prompts(file)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be read"):
        load_text(tmp_path / "none.txt")


def test_windows_are_whole_and_spread() -> None:
    assert windows(range(10), 3, 5) == ((0, 1, 2), (3, 4, 5), (6, 7, 8))
    assert windows(range(8), 2, 2) == ((0, 1), (4, 5))
    assert windows([1], 2, 2) == ()
