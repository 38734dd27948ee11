"""Values of JSON files that somebody else wrote: the kind that is expected, or nothing."""

from collections.abc import Mapping
from typing import Any


def mapping_of(value: object) -> Mapping[str, Any]:
    """The object; empty where something else stands."""
    return value if isinstance(value, Mapping) else {}


def count_of(value: object) -> int:
    """A whole number above 0, also when written as text; 0 otherwise."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    return value if type(value) is int and value > 0 else 0


def is_number(value: object) -> bool:
    """Whether it is a number; true and false are none."""
    return type(value) in (int, float)
