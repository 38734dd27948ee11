"""Whether draft and target mean the same by the same token ids. Decided by what the ids stand for; sizes alone decide nothing."""

from collections.abc import Iterator

from builder.checkpoint.tokenizer import Tokenizer
from builder.checkpoint.vocabulary import VocabularyDifference, compare_vocabularies
from builder.errors import Finding
from builder.planner.checks.models import Model, ids
from builder.planner.checks.small_models import suggestion

PADDING_MULTIPLE = 8
"""Padding rounds a model's width up, for tensor cores, to a multiple of this at least (128 and 256 are usual: vllm-project/vllm#10913)."""


def check_vocabulary(target: Model, draft: Model) -> Iterator[Finding]:
    """Ids equal: nothing. They differ in padding that no text uses: noted. They differ in meaning, or nobody can tell: refused."""
    if target.tokenizer is None or draft.tokenizer is None:
        if target.width != draft.width:
            yield _size(target, draft, "and without both tokenizers nobody can tell whether the difference is padding")
        return
    difference = compare_vocabularies(target.tokenizer.vocabulary, draft.tokenizer.vocabulary)
    if difference is not None:
        yield _meaning(target, draft, difference)
        return
    yield from _beyond(target, target.tokenizer, "a text that holds it cannot be served")
    yield from _beyond(draft, draft.tokenizer, "behind a text that holds it nothing is drafted")
    if target.width != draft.width:
        yield _padding(target, draft, target.tokenizer.vocabulary.end)


def check_logits_width(target: Model, draft: Model) -> Iterator[Finding]:
    """For acceptance by logits only: the draft's rows of logits go to the target as they are."""
    left, right = target.width, draft.width
    if left == right:  # what splitting a model adds to a row, its lane knows
        return
    message = (
        f"Acceptance by logits compares whole rows of logits, and they differ in width: {left} for {target}, "
        f"{right} for {draft}; by token ids only the ids must mean the same."
    )
    fix = "set speculation.acceptance: tokens"
    yield Finding("PAIR-LOGITS-WIDTH", "error", message, "speculation.acceptance", str(right), str(left), fix)


def _meaning(target: Model, draft: Model, difference: VocabularyDifference) -> Finding:
    mean = "means" if difference.count == 1 else "mean"
    shown = "; ".join(f"{i} is {_text(left)} for the target, {_text(right)} for the draft" for i, left, right in difference.first)
    message = (
        f"Draft tokens are passed as ids, and {ids(difference.count)} {mean} different text for {target} ({ids(target.width)}) "
        f"and {draft} ({ids(draft.width)}): {shown}."
    )
    _, needed, found = difference.first[0]
    return Finding("PAIR-VOCAB-MEANING", "error", message, draft.field, _text(found), _text(needed), _way_out(target))


def _padding(target: Model, draft: Model, used: int) -> Finding:
    if odd := next((model for model in (draft, target) if not _may_be_padded(model.width, used)), None):
        why = f"and {odd.width} is not padding: it is neither the {used} ids that the tokenizers name nor a multiple of {PADDING_MULTIPLE}"
        return _size(target, draft, f"{why}, so ids were added whose meaning no file tells")
    shared = min(target.width, draft.width)
    message = (
        f"Draft and target have vocabularies of different width, {draft.width} for {draft} and {target.width} for {target}, but both "
        f"tokenizers name the same {used} ids: the rest is padding that no text uses, and only ids below {shared} are drafted."
    )
    return Finding("PAIR-VOCAB-PADDING", "info", message, draft.field, str(draft.width), str(target.width), "nothing to do")


def _may_be_padded(width: int, used: int) -> bool:
    return width == used or width % PADDING_MULTIPLE == 0


def _size(target: Model, draft: Model, why: str) -> Finding:
    message = f"Draft tokens are passed as ids, but {draft} has {draft.width} of them and {target} {target.width}, {why}."
    return Finding("PAIR-VOCAB-SIZE", "error", message, draft.field, str(draft.width), str(target.width), _way_out(target))


def _beyond(model: Model, tokenizer: Tokenizer, consequence: str) -> Iterator[Finding]:
    vocabulary = tokenizer.vocabulary
    if vocabulary.end <= model.width:
        return
    first = min(i for i in vocabulary.text_of if i >= model.width)
    message = (
        f"The tokenizer of {model} names ids up to {vocabulary.end - 1}, the model has {model.width}: "
        f"id {first} ({vocabulary.text_of[first]!r}) is beyond its embedding, and {consequence}."
    )
    fix = "resize the model's embedding to the tokenizer, or leave it if no text holds these tokens"
    yield Finding("PAIR-VOCAB-BEYOND", "warning", message, model.field, str(vocabulary.end), f"<= {model.width}", fix)


def _way_out(target: Model) -> str:
    return f"take a draft with the target's tokenizer{suggestion(target)}, or set draft.method: ngram"


def _text(text: str | None) -> str:
    return "nothing" if text is None else repr(text)
