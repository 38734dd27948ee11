"""Values of JSON files that somebody else wrote: the kind that is expected, or nothing."""

import json
from collections.abc import Mapping
from typing import Any

MOST_COUNT = 2**63 - 1
"""No size of a model is larger; it bounds what is multiplied with it."""
MOST_NUMBER = 1e30
"""No number of a configuration is larger; products of two stay finite."""


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. Raises ValueError for every text that cannot be taken in, also one nested too deeply for the parser."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
    except json.JSONDecodeError:
        raise
    except UnicodeDecodeError:
        raise ValueError("it is no UTF-8 text") from None
    except ValueError:
        raise ValueError("it holds a number of too many digits") from None


def mapping_of(value: object) -> Mapping[str, Any]:
    """The object; empty where something else stands."""
    return value if isinstance(value, Mapping) else {}


def count_of(value: object) -> int:
    """A whole number above 0 that 63 bits hold, also when written as text; 0 otherwise."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < len(str(MOST_COUNT)):
        value = int(value)
    return value if type(value) is int and 0 < value <= MOST_COUNT else 0


def is_number(value: object) -> bool:
    """Whether it is a number that can be calculated with; true and false are none, nor are Infinity and NaN."""
    return type(value) in (int, float) and abs(value) <= MOST_NUMBER  # type: ignore[arg-type]
