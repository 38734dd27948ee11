"""Draft size against target size."""

from collections.abc import Callable

from builder.checkpoint import Checkpoint
from builder.errors import Finding

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]


def only(findings: list[Finding], code: str, severity: str) -> Finding:
    assert [(finding.code, finding.severity) for finding in findings] == [(code, severity)]
    return findings[0]


def test_the_target_drafts_for_itself(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target")
    finding = only(check(target, target), "PAIR-DRAFT-IS-TARGET", "error")
    assert finding.message == (
        "The draft is the target models/target itself: every draft token costs as much as the token that it may save."
    )
    assert finding.fix == "take a draft of a tenth of the target's size or less, or set draft.method: ngram"


def test_a_large_draft(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target", parameters=13_000_000_000), checkpoint("draft", parameters=13_000_000_000)
    finding = only(check(target, draft), "PAIR-DRAFT-SIZE", "warning")
    assert finding.message == (
        "The draft models/draft has 13.0 billion parameters, the target models/target 13.0 billion parameters: a draft of more than half "
        "the target's size seldom pays, because decoding time goes with the weights read."
    )
    assert (finding.found, finding.needed) == ("13000000000", "<= 6500000000")


def test_a_draft_between(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", parameters=8_000_000_000)
    finding = only(check(target, checkpoint("draft", parameters=4_000_000_000)), "PAIR-DRAFT-SIZE", "info")
    assert finding.message == (
        "The draft models/draft has 4.0 billion parameters, the target models/target 8.0 billion parameters: a draft token costs up to 50% "
        "of a target pass, so drafting pays only where more than such a share of "
        "draft tokens is accepted."
    )
    assert check(target, checkpoint("draft-2", parameters=1_000_000_000)) == []


def test_a_mixture_of_experts_counts_what_a_token_reads(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", parameters=30_000_000_000, active_parameters=3_000_000_000, experts=128)
    finding = only(check(target, checkpoint("draft", parameters=600_000_000)), "PAIR-DRAFT-SIZE", "info")
    assert finding.message == (
        "The draft models/draft has 600.0 million parameters, the target models/target 30.0 billion parameters (3.0 billion for one "
        "token): a draft token costs up to 20% of a target pass, so drafting pays only where more than such a share of "
        "draft tokens is accepted."
    )


def test_a_dense_model_counts_all_its_weights(checkpoint: MakeCheckpoint, check: Check) -> None:
    """Without its input embedding the draft would be below an eighth; what a lane reads of it is the lane's to know."""
    draft = checkpoint("draft", parameters=1_100_000_000, active_parameters=900_000_000)
    only(check(checkpoint("target", parameters=8_000_000_000), draft), "PAIR-DRAFT-SIZE", "info")
