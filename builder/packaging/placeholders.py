"""Left-over `${...}` of a template in a model repository: Triton says no more of them than "expected integer, got $"."""

import re
from collections.abc import Iterator
from pathlib import Path

from builder.errors import Finding, FindingsError

CONFIG = "config.pbtxt"
_PLACEHOLDER = re.compile(r"\$\{[^}\s]*\}")
_KEY = re.compile(r'key\s*:\s*"([^"]*)"')
_FIELD = re.compile(r"(\w+)\s*:")
_IN_MAP = ("string_value", "value")


def check_placeholders(repository: Path) -> None:
    """Raises FindingsError PKG-PLACEHOLDER that names file, line and key of every placeholder in every model's configuration."""
    findings = tuple(finding for file in sorted(repository.glob(f"*/{CONFIG}")) for finding in _placeholders(file))
    if findings:
        raise FindingsError(findings)


def _placeholders(file: Path) -> Iterator[Finding]:
    key = ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        fields = [field for field in _FIELD.findall(line.split("${")[0]) if field not in (*_IN_MAP, "key")]
        key = named.group(1) if (named := _KEY.search(line)) else fields[-1] if fields else key
        for found in _PLACEHOLDER.findall(line):
            message = f"{file}:{number}: {key} still holds the placeholder {found}; Triton refuses the whole repository for it"
            fix = "package again with tandem package, which fills every value, or write the value"
            yield Finding("PKG-PLACEHOLDER", "error", message, key, found, "a value", fix, str(file), number)
