"""The chat template that turns messages into a prompt, as text; it is never run here."""

import re
from pathlib import Path

from builder.checkpoint.tokenizer import SETTINGS, read_settings

FILE = "chat_template.jinja"
_COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
_PART = re.compile(r"{{.*?}}|{%.*?%}", re.DOTALL)


def read_chat_template(folder: Path) -> str:
    """The template that transformers would take: the file of its own first, then the settings' (of several the one named default).

    "" when the checkpoint has none. Raises RefusedError CKPT-TOKENIZER when a file is not JSON.
    """
    if (folder / FILE).is_file():
        return (folder / FILE).read_text(encoding="utf-8", errors="replace")
    for name in ("chat_template.json", SETTINGS):
        template = _default(read_settings(folder, name).get("chat_template"))
        if template:
            return template
    return ""


def writes_token(template: str, name: str, text: str) -> bool:
    """Whether a template writes a special token into a prompt, by its name (`bos_token`) or by its text."""
    template = _COMMENT.sub("", template)
    by_name = any(re.search(rf"\b{name}\b", part) for part in _PART.findall(template))
    return by_name or bool(text and text in template)


def _default(value: object) -> str:
    """A template, or of a list of named ones the one named default, or else the first."""
    if isinstance(value, list):
        named = {str(one.get("name")): one.get("template") for one in value if isinstance(one, dict)}
        value = named.get("default", next(iter(named.values()), ""))
    return value if isinstance(value, str) else ""
