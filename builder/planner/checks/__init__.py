"""Checks of a pair before anything is built: limits, vocabularies, special tokens, sizes."""

from builder.planner.checks.pair import check_pair

__all__ = ["check_pair"]
