"""What the speed plan has to say about the pair."""

from collections.abc import Iterator

from builder.errors import Finding
from builder.planner.speed.aiconfigurator import INSTALL
from builder.planner.speed.draft_checks import check_drafts
from builder.planner.speed.model import SpeedPlan
from builder.spec import PairSpec

DISAGREEMENT = 2.0
MORE_TOKENS = 1024
"""Room for prompts that a way out proposes."""


def check_speed(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    """Findings of the prediction: drafts that lose, figures that rest on an assumption, sources that disagree."""
    yield from _provider(plan)
    yield from check_trust(plan)
    yield from check_load(spec, plan)
    if spec.draft.method != "none":
        yield from check_drafts(spec, plan)


def _provider(plan: SpeedPlan) -> Iterator[Finding]:
    if plan.provider != "roofline" or "target" not in plan.notes:
        return
    band = f"within {plan.error_band:.0%}"
    message = f"Step times come from the chip's published rates, good {band}, since {plan.notes['target']}."
    missing = "not installed" in plan.notes["target"]
    fix = INSTALL if missing else "measure on your own server: planning.measured"
    yield Finding("SPEED-ROOFLINE", "info", message, "planning.step_times", "roofline", "aiconfigurator or measured", fix)


def check_trust(plan: SpeedPlan) -> Iterator[Finding]:
    """Sources that disagree, figures that were never checked, runs that are doubtful."""
    field, fix = "planning.measured", "measure step times on your own server, and name them in planning.measured"
    if plan.disagreement is not None and plan.disagreement > DISAGREEMENT:
        message = (
            f"Aiconfigurator and the roofline differ by {plan.disagreement:.1f} times in the target's step time{_both(plan)}; "
            f"more than {DISAGREEMENT:.0f} times means that one of them does not know this pair."
        )
        yield Finding("SPEED-DISAGREE", "warning", message, field, f"{plan.disagreement:.1f}x", f"at most {DISAGREEMENT:.0f}x", fix)
    for reason in plan.unverified:
        message = (
            f"Step times of {plan.provider} are unverified for this pair{_both(plan)}: {reason}; rates may be {plan.error_band:.0%} off."
        )
        yield Finding("SPEED-UNVERIFIED", "warning", message, field, plan.provider, "measured step times", fix)
    for doubt in plan.doubts:
        again = "measure target and draft steps too (target.decode, draft.decode), or make the runs again"
        message = f"The calibration runs are doubtful: {doubt}."
        yield Finding("SPEED-CALIBRATION", "warning", message, field, "overheads below zero", "overheads above zero", again)


def _both(plan: SpeedPlan) -> str:
    if plan.other_step_s is None:
        return ""
    return f" (at batch 1 {plan.rows[0].target_step_s * 1e3:.2f} ms by {plan.provider}, {plan.other_step_s * 1e3:.2f} ms by the roofline)"


def check_load(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    """Limits that shape what is predicted: the workload, requests at once, tokens of a pass."""
    yield from _workload(spec, plan)
    yield from _concurrency(spec, plan)
    yield from _no_room(spec, plan)


def _workload(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    asked, taken, limits = spec.planning.workload, plan.workload, spec.limits
    if (asked.input_tokens, asked.output_tokens) == (taken.input_tokens, taken.output_tokens):
        return
    cut = f"{taken.input_tokens} + {taken.output_tokens}"
    message = (
        f"Speed and capacity are predicted for requests of {cut} tokens: the default of {asked.input_tokens} + {asked.output_tokens} does "
        f"not fit prompts of {limits.max_input_tokens} and sequences of {limits.max_sequence_tokens} tokens."
    )
    fix = "write your own typical request as planning.workload"
    yield Finding("SPEED-WORKLOAD", "info", message, "planning.workload", cut, "your own request", fix)


def _concurrency(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    if plan.batch_limit != "serve.max_concurrent_requests":
        return
    at_once = spec.serve.max_concurrent_requests
    could = min(spec.limits.max_batch_size, plan.pool_sequences)
    message = (
        f"The orchestrator works on {at_once} requests at once, so no batch is larger, though the engines and their pools take {could}."
    )
    fix = f"set serve.max_concurrent_requests: {could}"
    yield Finding("SPEED-CONCURRENCY", "info", message, plan.batch_limit, str(at_once), str(could), fix)


def _no_room(spec: PairSpec, plan: SpeedPlan) -> Iterator[Finding]:
    most = spec.limits.max_batched_tokens
    full = [row for row in (*plan.rows, plan.saturation) if row.batch * (row.draft_tokens + 1) >= most]
    if not full:
        return
    row = min(full, key=lambda row: row.batch)
    tokens = row.batch * (row.draft_tokens + 1)
    drafts = f"with {row.draft_tokens} draft tokens " if row.draft_tokens else ""
    left = "takes more than one pass" if tokens > most else "leaves no room for prompts in a pass"
    message = f"From batch {row.batch} on a step {drafts}has {tokens} tokens and {left}: limits.max_batched_tokens is {most}."
    least = tokens + min(plan.workload.input_tokens, MORE_TOKENS)
    fix = f"set limits.max_batched_tokens: {least} or more, or a smaller limits.max_batch_size"
    yield Finding("SPEED-NO-ROOM", "warning", message, "limits.max_batched_tokens", str(most), f"more than {tokens}", fix)
