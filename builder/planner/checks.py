"""Checks of a pair: each looks at two checkpoints and the pair file, and returns findings."""

from collections.abc import Iterator

from builder.checkpoint import Checkpoint, compare_vocabularies, read_vocabulary
from builder.errors import Finding
from builder.spec import Pair


def check_pair(pair: Pair, target: Checkpoint, draft: Checkpoint | None) -> Iterator[Finding]:
    """Everything that keeps target and draft from working together within the pair file's limits."""
    yield from _limits(pair, target, "target")
    yield from _topology(pair)
    if draft is None:
        return
    yield from _limits(pair, draft, "draft")
    yield from _vocabulary(pair, target, draft)
    yield from _sizes(pair, target, draft)


def _finding(pair: Pair, code: str, field: str, message: str, *, found: str, needed: str, fix: str, warning: bool = False) -> Finding:
    return Finding(code, "warning" if warning else "error", message, field, found, needed, fix)


def _limits(pair: Pair, checkpoint: Checkpoint, role: str) -> Iterator[Finding]:
    wanted = pair.spec.limits.max_sequence_tokens
    if wanted > checkpoint.max_positions:
        yield _finding(
            pair,
            "PAIR-CONTEXT",
            "limits.max_sequence_tokens",
            f"the {role} was made for {checkpoint.max_positions} positions, the limit asks for {wanted}",
            found=str(wanted),
            needed=f"<= {checkpoint.max_positions}",
            fix=f"set limits.max_sequence_tokens to {checkpoint.max_positions} or less",
        )


def _topology(pair: Pair) -> Iterator[Finding]:
    if pair.spec.serve.topology == "single":
        yield _finding(
            pair,
            "PAIR-TOPOLOGY",
            "serve.topology",
            "only the orchestrated topology can be packaged",
            found="single",
            needed="orchestrated",
            fix="set serve.topology: orchestrated",
        )


def _vocabulary(pair: Pair, target: Checkpoint, draft: Checkpoint) -> Iterator[Finding]:
    if target.vocab_size != draft.vocab_size:
        yield _finding(
            pair,
            "PAIR-VOCAB-SIZE",
            "draft.checkpoint",
            f"draft and target have different vocabularies: {draft.vocab_size} and {target.vocab_size} token ids; "
            "draft tokens are passed as ids",
            found=str(draft.vocab_size),
            needed=str(target.vocab_size),
            fix="take a draft of the target's own family",
        )
    left, right = read_vocabulary(target.path), read_vocabulary(draft.path)
    difference = compare_vocabularies(left, right) if left and right else None
    if difference is not None:
        yield _finding(
            pair,
            "PAIR-VOCAB-MEANING",
            "draft.checkpoint",
            f"{difference.count} token ids mean different text; the first is {difference.token_id}: "
            f"{difference.left!r} for the target, {difference.right!r} for the draft",
            found=repr(difference.right),
            needed=repr(difference.left),
            fix="take a draft that was trained with the target's tokenizer",
        )


def _sizes(pair: Pair, target: Checkpoint, draft: Checkpoint) -> Iterator[Finding]:
    if draft.path == target.path:
        yield _finding(
            pair,
            "PAIR-DRAFT-IS-TARGET",
            "draft.checkpoint",
            "the draft is the target itself: every draft token costs as much as the token it may save",
            found=str(draft.path),
            needed="a smaller model",
            fix="take a draft of a tenth of the target's size or less, or draft.method: ngram",
        )
    elif draft.parameters * 2 > target.parameters:
        yield _finding(
            pair,
            "PAIR-DRAFT-SIZE",
            "draft.checkpoint",
            f"the draft has {draft.parameters / 1e6:.0f} M parameters, the target {target.parameters / 1e6:.0f} M; "
            "a draft this large seldom pays",
            found=f"{draft.parameters}",
            needed=f"below {target.parameters // 2}",
            fix="take a smaller draft; the speed gate will judge",
            warning=True,
        )
