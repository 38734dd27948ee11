"""The request that speed, cost and capacity are predicted for."""

from builder.spec import PairSpec
from builder.spec.model import WorkloadSpec

PROMPT_SHARE = 2, 3
"""Of the default request: two of three tokens are the prompt's."""


def workload_of(spec: PairSpec) -> WorkloadSpec:
    """`planning.workload` as it stands when the pair file names it; else the default, cut down to what the limits take."""
    asked, limits = spec.planning.workload, spec.limits
    if "workload" in spec.planning.model_fields_set:
        return asked
    longest = min(asked.input_tokens, limits.max_input_tokens)
    if longest + asked.output_tokens > limits.max_sequence_tokens:
        parts, whole = PROMPT_SHARE
        longest = max(1, min(longest, limits.max_sequence_tokens * parts // whole))
    return WorkloadSpec(input_tokens=longest, output_tokens=min(asked.output_tokens, limits.max_sequence_tokens - longest))
