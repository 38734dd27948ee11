"""Limits of the pair file against the models and against each other; the same in every lane."""

from collections.abc import Iterator

from builder.errors import Finding
from builder.planner.checks.models import Model, capital
from builder.planner.lengths import shorter
from builder.spec import PairSpec

WORKLOAD = ("input_tokens", "output_tokens")


def check_context(spec: PairSpec, target: Model, draft: Model | None) -> Iterator[Finding]:
    """Both models must reach the longest sequence: the draft reads what the target writes."""
    wanted = spec.limits.max_sequence_tokens
    for model in (target, draft) if draft else (target,):
        reach = model.checkpoint.max_positions
        if not 0 < reach < wanted:
            continue
        longest = model.checkpoint.max_positions
        other = ""
        if model is draft:
            other = f" ({target} reaches {target.checkpoint.max_positions}); the draft reads every sequence to its end"
        message = f"{capital(model)} was made for {longest} positions, limits.max_sequence_tokens asks for {wanted}{other}."
        fix = _shorter(spec, longest) + (", or take a draft that reaches further" if model is draft else "")
        yield Finding("PAIR-CONTEXT", "error", message, "limits.max_sequence_tokens", str(wanted), f"<= {longest}", fix)


def _shorter(spec: PairSpec, longest: int) -> str:
    changes = shorter(spec, longest)
    return "set " + ", ".join(f"{field} to {value}" for field, value in changes.items()) if changes else "take a model that reaches further"


def check_draft_room(spec: PairSpec) -> Iterator[Finding]:
    """A verification feeds k draft tokens and the token before them: k + 1 must fit in a sequence and, times the batch, in a pass."""
    if spec.draft.method == "none":
        return
    limits, rows = spec.limits, spec.speculation.max_draft_tokens + 1
    left = limits.max_sequence_tokens - limits.max_input_tokens
    if left < rows:
        message = (
            f"A prompt of limits.max_input_tokens ({limits.max_input_tokens}) leaves {left} tokens of limits.max_sequence_tokens "
            f"({limits.max_sequence_tokens}) for the answer, fewer than the {rows} of one verified draft (speculation.max_draft_tokens "
            f"{rows - 1} and the target's own): behind long prompts drafts are cut short."
        )
        fix = f"set limits.max_sequence_tokens to {limits.max_input_tokens + rows} or more, or draft fewer tokens"
        yield Finding("PAIR-DRAFT-ROOM", "warning", message, "limits.max_sequence_tokens", str(left), f">= {rows}", fix)
    needed = limits.max_batch_size * rows
    if rows <= limits.max_batched_tokens < needed:  # below one verification the lane refuses
        message = (
            f"A full batch of {limits.max_batch_size} sequences verifies {limits.max_batch_size} x {rows} = {needed} tokens in a pass, "
            f"limits.max_batched_tokens is {limits.max_batched_tokens}: some sequences wait for the next pass."
        )
        fix = f"set limits.max_batched_tokens to {needed} or more, or draft fewer tokens"
        found = str(limits.max_batched_tokens)
        yield Finding("PAIR-BATCHED-TOKENS", "warning", message, "limits.max_batched_tokens", found, f">= {needed}", fix)


def check_workload(spec: PairSpec) -> Iterator[Finding]:
    """A workload that the pair file names must be one that the deployment takes; the default one is not judged."""
    if "workload" not in spec.planning.model_fields_set:
        return
    work, limits = spec.planning.workload, spec.limits
    if work.input_tokens > limits.max_input_tokens:
        message = (
            f"planning.workload.input_tokens is {work.input_tokens}, but requests of more than {limits.max_input_tokens} prompt tokens "
            "(limits.max_input_tokens) are refused: the prediction would be of requests that are never served."
        )
        fix = f"set planning.workload.input_tokens to {limits.max_input_tokens} or less, or raise limits.max_input_tokens"
        found, needed = str(work.input_tokens), f"<= {limits.max_input_tokens}"
        yield Finding("PAIR-WORKLOAD", "error", message, "planning.workload.input_tokens", found, needed, fix)
    total = work.input_tokens + work.output_tokens
    if total > limits.max_sequence_tokens:
        parts = [f"{getattr(work, name)}{'' if name in work.model_fields_set else ' (the default)'}" for name in WORKLOAD]
        message = (
            f"planning.workload is {' + '.join(parts)} = {total} tokens, but a sequence ends at "
            f"{limits.max_sequence_tokens} (limits.max_sequence_tokens): the prediction would be of requests that are never served."
        )
        left = limits.max_sequence_tokens - work.input_tokens
        shorter = f"set planning.workload.output_tokens to {left} or less" if left > 0 else "shorten the workload"
        fix = f"{shorter}, or set limits.max_sequence_tokens to {total} or more"
        yield Finding(
            "PAIR-WORKLOAD", "error", message, "planning.workload.output_tokens", str(total), f"<= {limits.max_sequence_tokens}", fix
        )
