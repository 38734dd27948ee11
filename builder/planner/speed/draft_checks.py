"""What the speed plan has to say about the drafts: an assumed acceptance, batches where they lose, a length that is not the best."""

from collections.abc import Iterator

from builder.errors import Finding, Severity
from builder.planner.speed.constants import assumed_acceptance
from builder.planner.speed.model import BatchRow, SpeedPlan
from builder.spec import PairSpec

LENGTH = "speculation.max_draft_tokens"


def check_drafts(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    """Findings of a pair that drafts."""
    yield from _acceptance(spec, plan)
    yield from _losing(plan)
    yield from _stopping(spec, plan)
    yield from _longer_draft(spec, plan)
    yield from _shorter_draft(spec, plan)


def _acceptance(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    if plan.acceptance_source != "assumed":
        return
    needed, spread = plan.rows[0].break_even_acceptance, assumed_acceptance(spec.draft.method)[1]
    wins = "drafting wins at no acceptance" if needed is None else f"drafting wins from {needed:.2f} on"
    message = f"The speed-up is predicted for an acceptance of {plan.acceptance:.2f}, which is assumed; at batch 1 {wins}"
    message += f"; {spread}." if spread else "."
    fix = "measure it on your prompts, and write it as planning.acceptance"
    if plan.published_acceptance:
        fix += f" ({plan.published_acceptance})"
    yield Finding("SPEED-ACCEPTANCE", "info", message, "planning.acceptance", f"{plan.acceptance:.2f}", "a measured figure", fix)


def _losing(plan: SpeedPlan) -> Iterator[Finding]:
    if plan.stop_batch != 0:
        return
    first = plan.rows[0]
    needs = "no acceptance would do" if first.break_even_acceptance is None else f"it would need an acceptance of {_needed(first)}"
    message = (
        f"Drafting loses at every batch: {first.speedup:.2f}x at batch 1 with {first.draft_tokens} draft tokens, for a cycle takes "
        f"{first.cycle_s / first.target_step_s:.2f} target steps and yields {first.expected_length:.2f} tokens; "
        f"{needs}, and has {plan.acceptance:.2f}."
    )
    fix = "take a smaller draft, or draft.method: none"
    if plan.shorter_draft and plan.shorter_draft[1] > 1:
        length, speedup = plan.shorter_draft
        fix = f"set {LENGTH}: {length} ({speedup:.2f}x)"
    yield Finding("SPEED-DRAFT-LOSES", "warning", message, "draft", f"{first.speedup:.2f}x", "above 1.00x", fix)


def _stopping(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    stop, last = plan.stop_batch, plan.saturation
    if not stop or stop >= last.batch:
        return
    what, fix = _what_stops(spec, plan, stop)
    message = f"Above batch {stop} drafting is slower than not drafting ({last.speedup:.2f}x at batch {last.batch}); {what}."
    severity: Severity = "info" if plan.adaptive else "warning"
    yield Finding("SPEED-STOP-BATCH", severity, message, "limits.max_batch_size", str(last.batch), f"at most {stop}", fix)


def _what_stops(spec: PairSpec, plan: SpeedPlan, stop: int) -> tuple[str, str]:
    if plan.adaptive:
        return "speculation.adaptive stops it there", "leave it on; draft.method: none would save the draft's memory"
    if not plan.lane_adapts:
        what = f"and nothing stops it, since the draft length of {spec.engine.kind} is fixed"
        return what, f"set limits.max_batch_size: {stop}, or draft.method: none where larger batches are what counts"
    what = "and nothing stops it, since speculation.adaptive is false"
    return what, f"set speculation.adaptive: true, or limits.max_batch_size: {stop}"


def _longer_draft(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    if plan.longer_draft is not None:
        yield _other_length(spec, plan, "SPEED-LONGER-DRAFT", plan.longer_draft)


def _shorter_draft(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    if plan.shorter_draft is None:
        return
    if not plan.adaptive:
        yield _other_length(spec, plan, "SPEED-SHORTER-DRAFT", plan.shorter_draft, severity="warning")
        return
    length, limit = plan.shorter_draft[0], spec.speculation.max_draft_tokens
    message = (
        f"At acceptance {plan.acceptance:.2f} no batch takes more than {length} draft tokens; "
        f"engines, pools and their head-room are made for the limit of {limit}."
    )
    yield Finding("SPEED-SHORTER-DRAFT", "info", message, LENGTH, str(limit), str(length), f"set {LENGTH}: {length}")


def _other_length(spec: PairSpec, plan: SpeedPlan, code: str, better: tuple[int, float], *, severity: Severity = "info") -> Finding:
    length, speedup = better
    first, limit = plan.rows[0], spec.speculation.max_draft_tokens
    many = f"{length} token{'s' if length != 1 else ''}"
    message = (
        f"At batch 1 and acceptance {plan.acceptance:.2f} the best draft has {many} ({speedup:.2f}x); "
        f"the {'limit' if plan.adaptive else 'fixed length'} of {limit} reaches {first.speedup:.2f}x."
    )
    return Finding(code, severity, message, LENGTH, str(limit), str(length), f"set {LENGTH}: {length}")


def _needed(row: BatchRow) -> str:
    return f"{row.break_even_acceptance:.2f}"
