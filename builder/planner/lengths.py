"""Shorter sequences: every field of a pair file that must change with limits.max_sequence_tokens."""

from collections.abc import Mapping

from builder.spec import PairSpec

FEWEST_WINDOW_TOKENS = 16
"""The least that gates.accuracy.window_tokens may be."""


def shorter(spec: PairSpec, longest_tokens: int) -> Mapping[str, int]:
    """Dotted fields and their values for sequences of at most `longest_tokens`; empty where the gates leave no such pair file.

    A prompt is shorter than its sequence, and so is what the gates and a workload that the file names ask for.
    """
    limits, gates = spec.limits, spec.gates
    room = max(1, min(limits.max_sequence_tokens - limits.max_input_tokens, longest_tokens // 2))
    prompt = min(limits.max_input_tokens, longest_tokens - room) if limits.max_input_tokens >= longest_tokens else limits.max_input_tokens
    if prompt < FEWEST_WINDOW_TOKENS:
        return {}
    changes = {"limits.max_sequence_tokens": longest_tokens}
    if prompt < limits.max_input_tokens:
        changes["limits.max_input_tokens"] = prompt
    for name, tokens in (("lossless", gates.lossless.tokens), ("speed", gates.speed.tokens)):
        if tokens >= longest_tokens:
            changes[f"gates.{name}.tokens"] = longest_tokens - 1
    if gates.accuracy.window_tokens > prompt:
        changes["gates.accuracy.window_tokens"] = prompt
    return {**changes, **_workload(spec, prompt, longest_tokens)}


def _workload(spec: PairSpec, prompt: int, longest_tokens: int) -> Mapping[str, int]:
    work = spec.planning.workload
    changes: dict[str, int] = {}
    if "workload" not in spec.planning.model_fields_set:
        return changes
    inputs = min(work.input_tokens, prompt)
    if inputs < work.input_tokens:
        changes["planning.workload.input_tokens"] = inputs
    if inputs + work.output_tokens > longest_tokens:
        changes["planning.workload.output_tokens"] = longest_tokens - inputs
    return changes
