"""Which chat template counts, and whether it writes a token."""

import json
from pathlib import Path

import pytest

from builder.checkpoint.chat_template import read_chat_template, writes_token
from builder.errors import RefusedError


def test_no_template(tmp_path: Path) -> None:
    assert read_chat_template(tmp_path) == ""


def test_the_file_of_its_own_wins(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "settings"}))
    assert read_chat_template(tmp_path) == "settings"
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "json"}))
    assert read_chat_template(tmp_path) == "json"
    (tmp_path / "chat_template.jinja").write_text("jinja")
    assert read_chat_template(tmp_path) == "jinja"


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ([{"name": "tools", "template": "t"}, {"name": "default", "template": "d"}], "d"),
        ([{"name": "tools", "template": "t"}], "t"),
        ([], ""),
        (None, ""),
    ],
)
def test_of_several_the_default_one(tmp_path: Path, templates: object, expected: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    assert read_chat_template(tmp_path) == expected


def test_broken_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text("{")
    with pytest.raises(RefusedError, match=r"chat_template\.json cannot be read"):
        read_chat_template(tmp_path)


@pytest.mark.parametrize(
    ("template", "writes"),
    [
        ("{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}", True),
        ("{%- set text = bos_token + text %}{{ text }}", True),
        ("<s>[INST] {{ messages[0].content }}", True),
        ("{{ messages[0].content }} bos_token", False),
        ("{# {{ bos_token }} would be twice #}{{ messages[0].content }}", False),
        ("{{ no_bos_token_here }}", False),
        ("", False),
    ],
)
def test_templates_that_write_the_begin_token(template: str, writes: bool) -> None:
    assert writes_token(template, "bos_token", "<s>") == writes
