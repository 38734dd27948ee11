"""Special tokens, chat templates and tokenizer classes of a pair: one accepted and one found case for each rule."""

from collections.abc import Callable
from typing import Any

import pytest

from builder.checkpoint import Checkpoint
from builder.errors import Finding

MakeCheckpoint = Callable[..., Checkpoint]
Check = Callable[..., list[Finding]]
BEGINS = {
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [60], "tokens": ["<s>"]}},
    }
}
TEMPLATE = "{{ bos_token }}{{ messages[0]['content'] }}"


def only(findings: list[Finding], code: str, severity: str) -> Finding:
    assert [(finding.code, finding.severity) for finding in findings] == [(code, severity)]
    return findings[0]


def test_begin_tokens(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target"), checkpoint("draft", settings={"bos_token": "t0"})
    finding = only(check(target, draft), "PAIR-BEGIN-TOKEN", "warning")
    assert finding.message == (
        "Texts begin with token 60 ('<s>') for the target models/target and with 0 ('t0') for the draft models/draft; the target's is used "
        "for both, so the draft reads beginnings that it was not trained on and fewer of its tokens are accepted."
    )
    assert check(target, checkpoint("draft-2", settings={"bos_token": None})) == [], "no begin token is no other begin token"


def test_end_tokens(checkpoint: MakeCheckpoint, check: Check) -> None:
    """A base model drafts for an instruction-tuned one that ends at several tokens."""
    target, draft = checkpoint("target", config={"eos_token_id": [61, 59]}), checkpoint("draft")
    finding = only(check(target, draft), "PAIR-END-TOKENS", "info")
    assert finding.message == (
        "Answers of the target models/target end with 59 ('t59'), 61 ('</s>'), those of the draft models/draft with 61 ('</s>'); "
        "the target's end tokens are used for both."
    )
    assert check(target, checkpoint("draft-2", config={"eos_token_id": [59, 61]})) == []


def test_pad_and_unknown_tokens(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", settings={"unk_token": "t0"})
    draft = checkpoint("draft", settings={"pad_token": "t3", "unk_token": "t1"})
    finding = only(check(target, draft), "PAIR-SPECIAL-TOKENS", "info")
    assert finding.message == (
        "Special tokens differ that neither model generates from: pad is 62 ('<pad>') for the target models/target, 3 ('t3') for the draft "
        "models/draft; unknown is 0 ('t0') for the target models/target, 1 ('t1') for the draft models/draft."
    )
    assert (finding.found, finding.needed) == ("pad 3 ('t3'), unknown 1 ('t1')", "pad 62 ('<pad>'), unknown 0 ('t0')")
    assert check(target, checkpoint("draft-2")) == []


def test_a_special_token_without_an_entry(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(check(checkpoint("target", settings={"pad_token": "[PAD]"})), "CKPT-SPECIAL-TOKEN", "warning")
    assert finding.message == (
        "tokenizer_config.json of the target models/target sets pad_token to '[PAD]', which is no entry of tokenizer.json; "
        "transformers would add it behind the last id, which the model may not have."
    )
    assert check(checkpoint("target-2", settings={"pad_token": "<pad>"})) == []


def test_added_tokens_that_contradict_each_other(checkpoint: MakeCheckpoint, check: Check) -> None:
    decoder = {"60": {"content": "<s>"}, "61": {"content": "<eot>"}, "62": {"content": "[PAD]"}}
    finding = only(check(checkpoint("target", settings={"added_tokens_decoder": decoder})), "CKPT-ADDED-TOKENS", "warning")
    assert finding.message == (
        "The tokenizer files of the target models/target contradict each other on 2 added tokens: id 61 is '</s>' in tokenizer.json and "
        "'<eot>' in tokenizer_config.json; tokenizer.json is compared and served."
    )
    assert check(checkpoint("target-2", settings={"added_tokens_decoder": {"60": {"content": "<s>"}}})) == []


@pytest.mark.parametrize("adds", [{"tokenizer": BEGINS}, {"settings": {"add_bos_token": True}}])
def test_case_8_a_begin_token_that_two_would_add(checkpoint: MakeCheckpoint, check: Check, adds: dict[str, Any]) -> None:
    """Case 8 of the user reports: nothing to refuse, as preprocessing adds it once (tests/unit/triton_repo/preprocessing)."""
    finding = only(check(checkpoint("target", template=TEMPLATE, **adds)), "CKPT-BEGIN-TWICE", "info")
    assert finding.message == (
        "The tokenizer of the target models/target puts the begin token 60 ('<s>') in front of every text by itself, and its chat template "
        "writes it too; the served preprocessing adds it once."
    )


def test_a_begin_token_that_only_one_adds(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target", template=TEMPLATE)) == []
    assert check(checkpoint("target-2", tokenizer=BEGINS)) == []
    assert check(checkpoint("target-3", tokenizer=BEGINS, template="{{ messages[0]['content'] }}")) == []


def test_the_draft_s_begin_token_is_never_added(checkpoint: MakeCheckpoint, check: Check) -> None:
    assert check(checkpoint("target", template=TEMPLATE), checkpoint("draft", template=TEMPLATE, tokenizer=BEGINS)) == []


def test_chat_templates_that_differ(checkpoint: MakeCheckpoint, check: Check) -> None:
    target = checkpoint("target", template="one")
    finding = only(check(target, checkpoint("draft", template="another")), "PAIR-CHAT-TEMPLATE", "info")
    assert finding.message == (
        "The chat templates of the target models/target and the draft models/draft differ; the target's is used for both."
    )
    assert check(target, checkpoint("draft-2", template="one")) == []


def test_a_draft_without_a_chat_template(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(check(checkpoint("target", template="one"), checkpoint("draft")), "PAIR-CHAT-TEMPLATE", "warning")
    assert finding.field == "draft.checkpoint"
    assert finding.message == (
        "The target models/target has a chat template and the draft models/draft has none: it drafts from prompts in a form that it was "
        "not trained on, and fewer of its tokens are accepted."
    )


def test_a_target_without_a_chat_template(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(check(checkpoint("target"), checkpoint("draft", template="one")), "PAIR-CHAT-TEMPLATE", "warning")
    assert finding.field == "target.checkpoint"
    assert finding.message == (
        "The draft models/draft has a chat template and the target models/target has none: only the target's files are used, "
        "so chat requests are refused."
    )


REMOTE = {"auto_map": {"AutoTokenizer": ["tokenization_x.XTokenizer", None]}, "tokenizer_class": "XTokenizer"}


def test_a_tokenizer_that_is_code_of_the_checkpoint(checkpoint: MakeCheckpoint, check: Check) -> None:
    finding = only(check(checkpoint("target", settings=REMOTE)), "CKPT-REMOTE-CODE", "error")
    assert finding.message == (
        "The tokenizer class of the target models/target is code of the checkpoint (tokenization_x.py), and the served models run no code "
        "of a checkpoint."
    )
    assert finding.found == "tokenization_x.py"
    assert finding.fix == (
        "remove auto_map from tokenizer_config.json and set tokenizer_class: PreTrainedTokenizerFast; tokenizer.json holds the rest"
    )
    assert check(checkpoint("target-2", settings=REMOTE | {"tokenizer_class": "PreTrainedTokenizerFast"})) == []
    assert check(checkpoint("target-3"), checkpoint("draft", settings=REMOTE)) == [], "the draft's tokenizer is only compared"


def test_a_model_that_is_code_of_the_checkpoint(checkpoint: MakeCheckpoint, check: Check) -> None:
    config = {"auto_map": {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.X"}}
    finding = only(check(checkpoint("target", config=config, model_type="phi3")), "CKPT-MODEL-CODE", "info")
    assert finding.message == (
        "config.json of the target models/target names code of its own (configuration_x.py, modeling_x.py); it is not run: "
        "the lane's implementation of phi3 is built."
    )


def test_a_broken_file_is_told_at_the_model_whose_it_is(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target"), checkpoint("draft")
    (target.path / "special_tokens_map.json").write_text("{")
    findings = check(target, draft)
    assert {(f.code, f.field) for f in findings} == {("CKPT-TOKENIZER", "target.checkpoint")}


def test_a_broken_file_on_the_way_is_a_finding(checkpoint: MakeCheckpoint, check: Check) -> None:
    target, draft = checkpoint("target"), checkpoint("draft")
    (draft.path / "special_tokens_map.json").write_text("{")
    findings = check(target, draft, limits={"max_sequence_tokens": 8192})
    assert {"PAIR-CONTEXT", "CKPT-TOKENIZER"} == {finding.code for finding in findings}
    assert {f.field for f in findings if f.code == "CKPT-TOKENIZER"} == {"draft.checkpoint"}
