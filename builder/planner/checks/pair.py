"""All checks of a pair, in the order in which a person would ask."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from builder.checkpoint import Checkpoint
from builder.checkpoint.tokenizer import Tokenizer, read_tokenizer
from builder.errors import Finding, RefusedError
from builder.planner.checks.limits import check_context, check_draft_room, check_workload
from builder.planner.checks.models import Model, Role, model_of
from builder.planner.checks.sizes import check_sizes
from builder.planner.checks.special_tokens import check_remote_code, check_special_tokens, check_tokenizer_files
from builder.planner.checks.vocabulary import check_logits_width, check_vocabulary
from builder.spec import Pair


def check_pair(
    pair: Pair, target: Checkpoint, draft: Checkpoint | None, read: Callable[[Path, Tokenizer | None], Tokenizer] = read_tokenizer
) -> Iterator[Finding]:
    """Everything that keeps target and draft from working together within the pair file's limits, in every lane.

    Findings carry no position in the pair file but its dotted field; nothing stops at the first.
    """
    findings: list[Finding] = []
    tokenizer = _tokenizer(target, "target", None, findings, read)
    first = model_of(pair, "target", target, tokenizer)
    second = None
    if draft is not None:
        second = model_of(pair, "draft", draft, _tokenizer(draft, "draft", tokenizer, findings, read))
    yield from findings
    yield from _check_limits(pair, first, second)
    for model in (first, second) if second else (first,):
        yield from _guarded((model,), check_tokenizer_files(model))
        yield from check_remote_code(model)
    if second is not None:
        yield from _check_models(pair, first, second)


def _check_limits(pair: Pair, target: Model, draft: Model | None) -> Iterator[Finding]:
    yield from check_context(pair.spec, target, draft)
    yield from check_draft_room(pair.spec)
    yield from check_workload(pair.spec)


def _check_models(pair: Pair, target: Model, draft: Model) -> Iterator[Finding]:
    yield from check_vocabulary(target, draft)
    if pair.spec.speculation.acceptance == "logits":
        yield from check_logits_width(target, draft)
    yield from _guarded((target, draft), check_special_tokens(target, draft))
    yield from check_sizes(target, draft)


def _tokenizer(
    checkpoint: Checkpoint,
    role: Role,
    like: Tokenizer | None,
    findings: list[Finding],
    read: Callable[[Path, Tokenizer | None], Tokenizer],
) -> Tokenizer | None:
    try:
        return read(checkpoint.path, like)
    except RefusedError as error:
        said = {finding.code for finding in checkpoint.findings}
        findings += [_placed(finding, f"{role}.checkpoint") for finding in error.findings if finding.code not in said]
        return None


def _guarded(models: Sequence[Model], findings: Iterator[Finding]) -> Iterator[Finding]:
    """Findings, and the refusal of a small file that cannot be read on the way, at the model whose file it is."""
    try:
        yield from findings
    except RefusedError as error:
        for finding in error.findings:
            owner = next((model for model in models if Path(finding.file).is_relative_to(model.checkpoint.path)), models[-1])
            yield _placed(finding, owner.field)


def _placed(finding: Finding, field: str) -> Finding:
    return replace(finding, field=field)
