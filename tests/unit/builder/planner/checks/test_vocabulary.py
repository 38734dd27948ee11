"""Vocabularies of a pair, three-way: equal, different in padding alone, different in meaning."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builder.checkpoint import Checkpoint
from builder.errors import Finding

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]
WORDS = {f"t{i}": i for i in range(60)}
LOGITS = {"acceptance": "logits"}


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def only(findings: list[Finding], code: str, severity: str = "error") -> Finding:
    assert [(finding.code, finding.severity) for finding in findings] == [(code, severity)]
    return findings[0]


def test_equal_vocabularies(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target"), checkpoint("draft")) == []
    assert check(checkpoint("target-2"), checkpoint("draft-2"), speculation=LOGITS) == []


def test_padding_is_tolerated_and_recorded(checkpoint: MakeCheckpoint, check: Check) -> None:
    """As of Qwen2.5: 152064 ids of the 72B, 151936 of the 7B, 151665 that the tokenizer names."""
    words = {f"t{i}": i for i in range(151_643)}
    added = tuple({"id": 151_643 + i, "content": f"<|{i}|>"} for i in range(22))
    names: Any = {"words": words, "added": added, "settings": {"bos_token": None, "eos_token": "<|0|>", "pad_token": None}}
    target, draft = checkpoint("target", width=152_064, **names), checkpoint("draft", width=151_936, **names)
    finding = only(check(target, draft), "PAIR-VOCAB-PADDING", "info")
    assert finding.message == (
        "Draft and target have vocabularies of different width, 151936 for the draft models/draft and 152064 for the target models/target, "
        "but both tokenizers name the same 151665 ids: the rest is padding that no text uses, and only ids below 151936 are drafted."
    )
    assert (finding.field, finding.found, finding.needed) == ("draft.checkpoint", "151936", "152064")


@pytest.mark.parametrize(("target", "draft"), [(64, 72), (72, 64), (63, 64), (128, 63), (63, 1024)])
def test_widths_that_are_padding(checkpoint: MakeCheckpoint, check: Check, target: int, draft: int) -> None:
    """As many ids as the tokenizer names, or rounded up to a multiple of 8."""
    assert codes(check(checkpoint("target", width=target), checkpoint("draft", width=draft))) == ["PAIR-VOCAB-PADDING"]


@pytest.mark.parametrize("speculation", [{}, LOGITS])
def test_case_1_two_ids_too_many(checkpoint: MakeCheckpoint, check: Check, speculation: dict[str, str]) -> None:
    """Case 1 of the user reports: 128256 ids and 128258, everything else alike, is refused; 128256 on both sides passes.

    The tokenizers are alike, so they name neither of the two further ids. A difference in width that the tokenizers do not explain is
    padding only when it can be: 128258 is neither the number of ids named nor a multiple of 8, so two ids were added whose meaning no file
    tells. Where it can be padding (Qwen2.5 above), acceptance by token ids takes the pair with a note and acceptance by logits refuses it.
    With an entry for the ids on one side they differ in meaning; without tokenizers nobody can tell: both are refused, too.
    """
    target = checkpoint("target", width=128_256)
    findings = check(target, checkpoint("draft", width=128_258), speculation=speculation)
    assert codes(findings) == ["PAIR-VOCAB-SIZE", *(["PAIR-LOGITS-WIDTH"] if speculation else [])]
    assert findings[0].message == (
        "Draft tokens are passed as ids, but the draft models/draft has 128258 of them and the target models/target 128256, and 128258 is "
        "not padding: it is neither the 63 ids that the tokenizers name nor a multiple of 8, so ids were added whose meaning no file tells."
    )
    assert (findings[0].severity, findings[0].found, findings[0].needed) == ("error", "128258", "128256")
    assert check(target, checkpoint("draft-2", width=128_256), speculation=speculation) == []


def test_case_1_with_entries_for_the_further_ids(checkpoint: MakeCheckpoint, check: Check) -> None:
    words = {f"t{i}": i for i in range(128_256)}
    target = checkpoint("target", width=128_256, words=words, added=(), settings={"bos_token": None, "eos_token": "t1", "pad_token": None})
    more = words | {"<a>": 128_256, "<b>": 128_257}
    draft = checkpoint("draft", width=128_258, words=more, added=(), settings={"bos_token": None, "eos_token": "t1", "pad_token": None})
    assert only(check(target, draft), "PAIR-VOCAB-MEANING").message == (
        "Draft tokens are passed as ids, and 2 token ids mean different text for the target models/target (128256 token ids) and the draft "
        "models/draft (128258 token ids): 128256 is nothing for the target, '<a>' for the draft; 128257 is nothing for the target, "
        "'<b>' for the draft."
    )


def test_case_1_without_a_tokenizer(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target", width=128_256), checkpoint("draft", width=128_258)
    (draft.path / "tokenizer.json").unlink()
    findings = check(target, draft)
    assert codes(findings) == ["CKPT-TOKENIZER", "PAIR-VOCAB-SIZE"]
    assert findings[0].field == "draft.checkpoint"
    assert findings[1].message == (
        "Draft tokens are passed as ids, but the draft models/draft has 128258 of them and the target models/target 128256, "
        "and without both tokenizers nobody can tell whether the difference is padding."
    )


def test_what_the_reader_said_is_not_said_again(checkpoint: MakeCheckpoint, check: Check) -> None:
    draft = checkpoint("draft")
    (draft.path / "tokenizer.json").unlink()
    said = Finding("CKPT-TOKENIZER", "error", "It holds no tokenizer.json.", "draft.checkpoint")
    assert check(checkpoint("target"), replace(draft, findings=(said,))) == []


def test_other_meaning(checkpoint: MakeCheckpoint, check: Check) -> None:
    words = WORDS | {"t5": 6, "t6": 5}
    finding = only(check(checkpoint("target"), checkpoint("draft", words=words)), "PAIR-VOCAB-MEANING")
    assert finding.message == (
        "Draft tokens are passed as ids, and 2 token ids mean different text for the target models/target (64 token ids) and the draft "
        "models/draft (64 token ids): 5 is 't5' for the target, 't6' for the draft; 6 is 't6' for the target, 't5' for the draft."
    )
    assert (finding.found, finding.needed) == ("'t6'", "'t5'")
    assert finding.fix == "take a draft with the target's tokenizer, or set draft.method: ngram"


def test_one_other_id(checkpoint: MakeCheckpoint, check: Check) -> None:
    words = {text: i for text, i in WORDS.items() if i != 7}
    message = only(check(checkpoint("target"), checkpoint("draft", words=words)), "PAIR-VOCAB-MEANING").message
    assert "and 1 token id means different text for" in message
    assert message.endswith(": 7 is 't7' for the target, nothing for the draft.")


def test_another_family_shows_three_ids_and_names_a_draft(checkpoint: MakeCheckpoint, check: Check) -> None:
    """A draft of 49152 ids for a target of 256000 (sgl-project/sglang#23838)."""
    settings = {"bos_token": None, "eos_token": "x1", "pad_token": None}
    target = checkpoint(
        "target", model_type="gemma2", width=256_000, words={f"x{i}": i for i in range(256_000)}, added=(), settings=settings
    )
    draft = checkpoint("draft", width=49_152, words={f"x{i}": i + 1 for i in range(49_151)}, added=(), settings=settings)
    findings = check(target, draft)
    assert codes(findings) == ["PAIR-VOCAB-MEANING", "PAIR-END-TOKENS"]
    assert findings[0].message == (
        "Draft tokens are passed as ids, and 256000 token ids mean different text for the target models/target (256000 token ids) and the "
        "draft models/draft (49152 token ids): 0 is 'x0' for the target, nothing for the draft; 1 is 'x1' for the target, 'x0' for the "
        "draft; 2 is 'x2' for the target, 'x1' for the draft."
    )
    assert findings[0].fix == "take a draft with the target's tokenizer, for example google/gemma-2-2b-it, or set draft.method: ngram"


def test_spelling_is_not_meaning(checkpoint: MakeCheckpoint, check: Check) -> None:
    """The same vocabulary out of a sentencepiece conversion and out of a byte-level one (LostRuins/koboldcpp#2325)."""
    target = checkpoint("target", words={"▁a": 0, "<0x0A>": 1}, tokenizer={"decoder": {"type": "Metaspace"}})
    draft = checkpoint("draft", words={"Ġa": 0, "Ċ": 1}, tokenizer={"decoder": {"type": "ByteLevel"}})
    assert check(target, draft) == []


def test_logits_need_equal_widths(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target", width=72), checkpoint("draft")
    assert codes(check(target, draft)) == ["PAIR-VOCAB-PADDING"]
    findings = check(target, draft, speculation=LOGITS)
    assert codes(findings) == ["PAIR-VOCAB-PADDING", "PAIR-LOGITS-WIDTH"]
    assert findings[1].message == (
        "Acceptance by logits compares whole rows of logits, and they differ in width: 72 for the target models/target, 64 for the draft "
        "models/draft; by token ids only the ids must mean the same."
    )
    assert (findings[1].field, findings[1].fix) == ("speculation.acceptance", "set speculation.acceptance: tokens")


def test_what_a_split_adds_to_logits_is_the_lane_s_to_judge(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target", width=63), checkpoint("draft", width=63)
    assert check(target, draft, speculation=LOGITS, target={"tensor_parallel": 4}) == []


def test_tokenizers_that_name_more_ids_than_the_model_has(checkpoint: MakeCheckpoint, check: Check) -> None:
    """As of Gemma 3: the tokenizer names id 262144, which only the larger models have."""
    findings = check(checkpoint("target"), checkpoint("draft", width=56))
    assert [(f.code, f.severity) for f in findings] == [("PAIR-VOCAB-BEYOND", "warning"), ("PAIR-VOCAB-PADDING", "info")]
    assert findings[0].message == (
        "The tokenizer of the draft models/draft names ids up to 62, the model has 56: id 56 ('t56') is beyond its embedding, and behind a "
        "text that holds it nothing is drafted."
    )
    assert findings[0].fix == "resize the model's embedding to the tokenizer, or leave it if no text holds these tokens"
    (finding,) = check(checkpoint("target-2", width=56), checkpoint("draft-2", width=56))[:1]
    assert (finding.field, finding.message.endswith("and a text that holds it cannot be served.")) == ("target.checkpoint", True)
