"""Limits that hold in every lane: one accepted and one refused case for each rule."""

from collections.abc import Callable

from builder.checkpoint import Checkpoint
from builder.errors import Finding

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]


def only(findings: list[Finding], code: str, severity: str) -> Finding:
    assert [(finding.code, finding.severity) for finding in findings] == [(code, severity)]
    return findings[0]


def test_target_s_context(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", max_positions=4096)
    finding = only(check(target, limits={"max_sequence_tokens": 4097}), "PAIR-CONTEXT", "error")
    assert finding.message == "The target models/target was made for 4096 positions, limits.max_sequence_tokens asks for 4097."
    assert (finding.field, finding.fix) == ("limits.max_sequence_tokens", "set limits.max_sequence_tokens to 4096")
    assert check(target, limits={"max_sequence_tokens": 4096}) == []


def test_the_way_out_of_a_short_context_names_every_field(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", max_positions=131_072)
    limits = {"max_sequence_tokens": 200_000, "max_input_tokens": 190_000}
    finding = only(check(target, limits=limits), "PAIR-CONTEXT", "error")
    assert finding.fix == "set limits.max_sequence_tokens to 131072, limits.max_input_tokens to 121072"
    assert check(target, limits={"max_sequence_tokens": 131_072, "max_input_tokens": 121_072}) == []


def test_the_way_out_names_gates_and_workload_too(checkpoint: MakeCheckpoint, check: Check) -> None:
    """Each as large as the way out allows: the pair file is taken."""
    target, work = checkpoint("target", max_positions=100), {"input_tokens": 1000, "output_tokens": 500}
    finding = check(target, planning={"workload": work})[0]
    assert finding.fix == (
        "set limits.max_sequence_tokens to 100, limits.max_input_tokens to 50, gates.speed.tokens to 99, "
        "gates.accuracy.window_tokens to 50, planning.workload.input_tokens to 50, planning.workload.output_tokens to 50"
    )
    smaller = {
        "limits": {"max_sequence_tokens": 100, "max_input_tokens": 50},
        "gates": {"speed": {"tokens": 99}, "accuracy": {"window_tokens": 50}},
        "planning": {"workload": {"input_tokens": 50, "output_tokens": 50}},
    }
    assert check(target, **smaller) == []


def test_draft_s_context(checkpoint: MakeCheckpoint, check: Check) -> None:
    """A draft that is asked beyond its positions reads memory it does not own (NVIDIA/TensorRT-LLM#4879)."""
    target, draft = checkpoint("target", max_positions=131_072), checkpoint("draft", max_positions=2048)
    finding = only(check(target, draft, limits={"max_sequence_tokens": 3000}), "PAIR-CONTEXT", "error")
    assert finding.message == (
        "The draft models/draft was made for 2048 positions, limits.max_sequence_tokens asks for 3000 (the target models/target reaches "
        "131072); the draft reads every sequence to its end."
    )
    assert finding.fix == "set limits.max_sequence_tokens to 2048, or take a draft that reaches further"
    assert check(target, draft, limits={"max_sequence_tokens": 2048}) == []


def test_positions_without_a_limit(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target", max_positions=0), limits={"max_sequence_tokens": 1 << 20}) == []


LONG_PROMPT = {"max_input_tokens": 250, "max_sequence_tokens": 256}


def test_room_for_a_draft_behind_the_longest_prompt(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, gates = checkpoint("target"), {"accuracy": {"window_tokens": 128}}
    finding = only(check(target, limits=LONG_PROMPT, gates=gates, speculation={"max_draft_tokens": 6}), "PAIR-DRAFT-ROOM", "warning")
    assert finding.message == (
        "A prompt of limits.max_input_tokens (250) leaves 6 tokens of limits.max_sequence_tokens (256) for the answer, fewer than the 7 of "
        "one verified draft (speculation.max_draft_tokens 6 and the target's own): behind long prompts drafts are cut short."
    )
    assert finding.fix == "set limits.max_sequence_tokens to 257 or more, or draft fewer tokens"
    assert check(target, limits=LONG_PROMPT, gates=gates, speculation={"max_draft_tokens": 5}) == []
    assert check(target, limits=LONG_PROMPT, gates=gates, speculation={"max_draft_tokens": 6}, draft={"method": "none"}) == []


def test_a_pass_holds_the_drafts_of_a_full_batch(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target")
    limits = {"max_batch_size": 16, "max_batched_tokens": 95}
    finding = only(check(target, limits=limits, speculation={"max_draft_tokens": 5}), "PAIR-BATCHED-TOKENS", "warning")
    assert finding.message == (
        "A full batch of 16 sequences verifies 16 x 6 = 96 tokens in a pass, limits.max_batched_tokens is 95: "
        "some sequences wait for the next pass."
    )
    assert finding.fix == "set limits.max_batched_tokens to 96 or more, or draft fewer tokens"
    only(check(target, limits=limits | {"max_batched_tokens": 6}, speculation={"max_draft_tokens": 5}), "PAIR-BATCHED-TOKENS", "warning")
    least = check(target, limits=limits | {"max_batched_tokens": 5}, speculation={"max_draft_tokens": 5})
    assert least == [], "a pass that holds not even one verification is for the lane to refuse"
    assert check(target, limits={"max_batch_size": 16, "max_batched_tokens": 96}, speculation={"max_draft_tokens": 5}) == []
    assert check(target, limits=limits, draft={"method": "none"}) == []


def test_workload_s_prompt(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target")
    finding = only(check(target, planning={"workload": {"input_tokens": 1537, "output_tokens": 500}}), "PAIR-WORKLOAD", "error")
    assert finding.message == (
        "planning.workload.input_tokens is 1537, but requests of more than 1536 prompt tokens (limits.max_input_tokens) are refused: "
        "the prediction would be of requests that are never served."
    )
    assert finding.field == "planning.workload.input_tokens"
    assert finding.fix == "set planning.workload.input_tokens to 1536 or less, or raise limits.max_input_tokens"
    assert check(target, planning={"workload": {"input_tokens": 1536, "output_tokens": 512}}) == []


def test_workload_s_sequence(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(
        check(checkpoint("target"), planning={"workload": {"input_tokens": 1500, "output_tokens": 600}}), "PAIR-WORKLOAD", "error"
    )
    assert finding.message == (
        "planning.workload is 1500 + 600 = 2100 tokens, but a sequence ends at 2048 (limits.max_sequence_tokens): "
        "the prediction would be of requests that are never served."
    )
    assert finding.field == "planning.workload.output_tokens"
    assert finding.fix == "set planning.workload.output_tokens to 548 or less, or set limits.max_sequence_tokens to 2100 or more"


def test_a_workload_of_which_only_the_prompt_is_named(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(
        check(checkpoint("target"), planning={"workload": {"input_tokens": 1536}}, limits={"max_sequence_tokens": 2000}),
        "PAIR-WORKLOAD",
        "error",
    )
    assert finding.message.startswith("planning.workload is 1536 + 500 (the default) = 2036 tokens, but a sequence ends at 2000 ")


def test_the_default_workload_is_not_judged(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target"), limits=LONG_PROMPT, gates={"accuracy": {"window_tokens": 128}}, planning={"acceptance": 0.6}) == []


def test_every_reason_at_once(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", max_positions=1024)
    findings = check(target, target, planning={"workload": {"input_tokens": 4000}})
    codes = ["PAIR-CONTEXT", "PAIR-CONTEXT", "PAIR-WORKLOAD", "PAIR-WORKLOAD", "PAIR-DRAFT-IS-TARGET"]
    assert [f.code for f in findings] == codes
