"""The pair file: its model, its reader, its JSON Schema."""

from builder.spec.load import Pair, load_pair
from builder.spec.model import PairSpec
from builder.spec.schema import json_schema

__all__ = ["Pair", "PairSpec", "json_schema", "load_pair"]
