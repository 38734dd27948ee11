"""JSON Schema of the pair file, for editors."""

import json
from typing import Any

from builder.spec.model import PairSpec


def json_schema() -> dict[str, Any]:
    """JSON Schema of a pair file, with every default."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tandem pair file",
        **{k: v for k, v in PairSpec.model_json_schema().items() if k != "title"},
    }


def schema_text() -> str:
    """The text of `configs/schema.json`."""
    return json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
