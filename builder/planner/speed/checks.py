"""What the speed plan has to say about the pair."""

from collections.abc import Iterator

from builder.errors import Finding, Severity
from builder.planner.speed.aiconfigurator import INSTALL
from builder.planner.speed.model import BatchRow, SpeedPlan
from builder.spec import PairSpec

DISAGREEMENT = 2.0


def check_speed(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    """Findings of the prediction: drafts that lose, figures that rest on an assumption, sources that disagree."""
    yield from _provider(plan)
    yield from _trust(plan)
    if spec.draft.method == "none":
        return
    yield from _acceptance(plan)
    yield from _losing(spec, plan)
    yield from _longer_draft(spec, plan)


def _provider(plan: SpeedPlan) -> Iterator[Finding]:
    if plan.provider != "roofline" or "target" not in plan.notes:
        return
    band = f"within {plan.error_band:.0%}"
    message = f"Step times come from the chip's published rates, good {band}, since {plan.notes['target']}."
    missing = "not installed" in plan.notes["target"]
    fix = INSTALL if missing else "measure on your own server: planning.measured"
    yield Finding("SPEED-ROOFLINE", "info", message, "planning.step_times", "roofline", "aiconfigurator or measured", fix)


def _trust(plan: SpeedPlan) -> Iterator[Finding]:
    field, fix = "planning.measured", "measure step times on your own server, and name them in planning.measured"
    if plan.disagreement is not None and plan.disagreement > DISAGREEMENT:
        message = (
            f"Aiconfigurator and the roofline differ by {plan.disagreement:.1f} times in the target's step time; "
            f"more than {DISAGREEMENT:.0f} times means that one of them does not know this pair."
        )
        yield Finding("SPEED-DISAGREE", "warning", message, field, f"{plan.disagreement:.1f}x", f"at most {DISAGREEMENT:.0f}x", fix)
    for reason in plan.unverified:
        message = f"Step times of {plan.provider} are unverified for this pair: {reason}."
        yield Finding("SPEED-UNVERIFIED", "info", message, field, plan.provider, "measured step times", fix)


def _acceptance(plan: SpeedPlan) -> Iterator[Finding]:
    if plan.acceptance_source != "assumed":
        return
    first = plan.rows[0]
    message = (
        f"The speed-up is predicted for an acceptance of {plan.acceptance:.2f}, which is assumed; "
        f"at batch 1 drafting wins from {_needed(first)} on."
    )
    fix = "measure it on your prompts, and write it as planning.acceptance"
    yield Finding("SPEED-ACCEPTANCE", "info", message, "planning.acceptance", f"{plan.acceptance:.2f}", "a measured figure", fix)


def _losing(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    stop, last = plan.stop_batch, plan.saturation
    if stop == 0:
        first = plan.rows[0]
        message = (
            f"Drafting loses at every batch: {first.speedup:.2f}x at batch 1 with {first.draft_tokens} draft tokens, for a cycle takes "
            f"{first.cycle_s / first.target_step_s:.2f} target steps and yields {first.expected_length:.2f} tokens; "
            f"it would need an acceptance of {_needed(first)}, and has {plan.acceptance:.2f}."
        )
        fix = "take a smaller draft, or draft.method: none"
        yield Finding("SPEED-DRAFT-LOSES", "warning", message, "draft", f"{first.speedup:.2f}x", "above 1.00x", fix)
    elif stop is not None and stop < last.batch:
        adaptive = spec.speculation.adaptive
        what = "speculation.adaptive stops it there" if adaptive else "and nothing stops it, since speculation.adaptive is false"
        message = f"Above batch {stop} drafting is slower than not drafting ({last.speedup:.2f}x at batch {last.batch}); {what}."
        fix = (
            "leave it on; draft.method: none would save the draft's memory"
            if adaptive
            else f"set speculation.adaptive: true, or limits.max_batch_size: {stop}"
        )
        severity: Severity = "info" if adaptive else "warning"
        yield Finding("SPEED-STOP-BATCH", severity, message, "limits.max_batch_size", str(last.batch), f"at most {stop}", fix)


def _longer_draft(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    if plan.longer_draft is None:
        return
    length, speedup = plan.longer_draft
    first, limit = plan.rows[0], spec.speculation.max_draft_tokens
    message = (
        f"At batch 1 and acceptance {plan.acceptance:.2f} the best draft has {length} tokens ({speedup:.2f}x); "
        f"the limit of {limit} reaches {first.speedup:.2f}x."
    )
    fix = f"set speculation.max_draft_tokens: {length}"
    yield Finding("SPEED-LONGER-DRAFT", "info", message, "speculation.max_draft_tokens", str(limit), str(length), fix)


def _needed(row: BatchRow) -> str:
    return "more than 1" if row.break_even_acceptance is None else f"{row.break_even_acceptance:.2f}"
