"""Tokenizer files: what is read of them, what is refused and how it is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.checkpoint.tokenizer import Tokenizer, read_settings, read_tokenizer
from builder.checkpoint.vocabulary import Vocabulary
from builder.errors import Finding, RefusedError

WORDS = {"a": 0, "b": 1, "merges": 2}


def write(folder: Path, content: dict[str, Any], settings: dict[str, Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def refusal(folder: Path) -> Finding:
    with pytest.raises(RefusedError) as caught:
        read_tokenizer(folder)
    assert caught.value.finding.code == "CKPT-TOKENIZER"
    return caught.value.finding


def test_vocabulary_with_added_tokens(tmp_path: Path) -> None:
    content = {"model": {"type": "BPE", "vocab": WORDS}, "added_tokens": [{"id": 3, "content": "<s>"}, {"id": 1, "content": "B"}]}
    assert read_tokenizer(write(tmp_path, content)).vocabulary == Vocabulary(
        {0: "a", 1: "B", 2: "merges", 3: "<s>"}, added=frozenset({1, 3})
    )


def test_unigram_models_list_their_vocabulary(tmp_path: Path) -> None:
    tokenizer = read_tokenizer(write(tmp_path, {"model": {"type": "Unigram", "vocab": [["a", -1.0], ["b", -2.0]]}}))
    assert tokenizer.vocabulary.text_of == {0: "a", 1: "b"}


def test_tokens_that_only_the_settings_add_are_entries_too(tmp_path: Path) -> None:
    settings = {"added_tokens_decoder": {"1": {"content": "other"}, "7": {"content": "<|end|>"}}}
    vocabulary = read_tokenizer(write(tmp_path, {"model": {"vocab": WORDS}}, settings)).vocabulary
    assert vocabulary.text_of == {0: "a", 1: "b", 2: "merges", 7: "<|end|>"}
    assert vocabulary.added == {7}


LAYOUTS: list[Any] = [
    {"model": {"type": "BPE", "vocab": WORDS, "merges": ["a b", "b ]", "} }"]}},
    {"model": {"type": "BPE", "vocab": WORDS, "merges": [["a", "b"], ["]", "}"]]}},
    {"model": {"type": "BPE", "vocab": WORDS, "merges": []}},
    {"model": {"type": "BPE", "merges": [["a", "b"]], "vocab": WORDS}},
    {"model": {"type": "BPE", "vocab": WORDS, "merges": [["a", "b"]]}, "post_processor": None},
    {"model": {"type": "BPE", "vocab": WORDS}},
]


@pytest.mark.parametrize("content", LAYOUTS, ids=range(len(LAYOUTS)))
@pytest.mark.parametrize("indent", [None, 2])
def test_merges_are_passed_over_wherever_they_stand(tmp_path: Path, content: dict[str, Any], indent: int | None) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(content, indent=indent))
    assert read_tokenizer(tmp_path).vocabulary.text_of == {0: "a", 1: "b", 2: "merges"}


def test_merges_that_come_last_are_not_parsed(tmp_path: Path) -> None:
    """They are most of the file: they may even be no JSON."""
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": {"a": 0}, "merges": [oh no] } }')
    assert read_tokenizer(tmp_path).vocabulary.text_of == {0: "a"}


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
    "special_tokens": {"<s>": {"ids": [5]}, "</s>": {"ids": [6]}},
}


@pytest.mark.parametrize(
    ("processor", "begin_ids"),
    [
        (TEMPLATE, (5,)),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, TEMPLATE]}, (5,)),
        (TEMPLATE | {"single": TEMPLATE["single"][1:]}, ()),
        ({"type": "ByteLevel"}, ()),
        (None, ()),
    ],
)
def test_ids_in_front_of_every_text(tmp_path: Path, processor: object, begin_ids: tuple[int, ...]) -> None:
    assert read_tokenizer(write(tmp_path, {"model": {"vocab": WORDS}, "post_processor": processor})).begin_ids == begin_ids


def test_the_same_file_twice_shares_its_vocabulary(tmp_path: Path) -> None:
    content = {"model": {"vocab": WORDS}, "post_processor": TEMPLATE}
    first = read_tokenizer(write(tmp_path / "one", content))
    second = read_tokenizer(write(tmp_path / "two", content, {"tokenizer_class": "T"}), first)
    assert second.vocabulary is first.vocabulary
    assert second == Tokenizer(tmp_path / "two", first.digest, first.vocabulary, (5,), {"tokenizer_class": "T"})
    added = {"added_tokens_decoder": {"9": {"content": "x"}}}
    assert read_tokenizer(write(tmp_path / "three", content, added), first).vocabulary.end == 10
    assert read_tokenizer(write(tmp_path / "four", {"model": {"vocab": {"a": 0}}}), first).vocabulary.end == 1


def test_no_tokenizer_at_all(tmp_path: Path) -> None:
    finding = refusal(tmp_path)
    assert finding.message == f"{tmp_path} holds no tokenizer.json: a fast tokenizer is needed, to compare what ids mean and to serve."
    assert (finding.found, finding.fix) == ("nothing", "copy tokenizer.json and tokenizer_config.json of the model into the folder")


def test_sentencepiece_alone(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"\0")
    finding = refusal(tmp_path)
    assert finding.message == (
        f"{tmp_path} holds tokenizer.model but no tokenizer.json: a fast tokenizer is needed, to compare what ids mean and to serve."
    )
    assert finding.found == "tokenizer.model"
    assert finding.fix.startswith('python -c "from transformers import AutoTokenizer as T;')


def test_a_model_without_a_vocabulary(tmp_path: Path) -> None:
    finding = refusal(write(tmp_path, {"model": {"type": "Custom"}}))
    assert finding.message == (
        f"{tmp_path / 'tokenizer.json'} lists no vocabulary (model type Custom), so what its ids mean cannot be compared; "
        "a fast tokenizer is needed."
    )
    assert (finding.found, finding.needed) == ("model type Custom", "a fast tokenizer (tokenizer.json)")


@pytest.mark.parametrize("text", ["", '{"model": ', "[]", '{"model": 3}', '{"model": {"vocab": {"a": "x"}}}', '{"added_tokens": []}'])
def test_broken_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    assert refusal(tmp_path).message.startswith(f"{tmp_path / 'tokenizer.json'} cannot be read as a tokenizer: ")


@pytest.mark.parametrize(("text", "why"), [("{", "cannot be read: "), ("[]", "holds no object.")])
def test_broken_settings(tmp_path: Path, text: str, why: str) -> None:
    write(tmp_path, {"model": {"vocab": WORDS}})
    (tmp_path / "tokenizer_config.json").write_text(text)
    assert refusal(tmp_path).message.startswith(f"{tmp_path / 'tokenizer_config.json'} {why}")


def test_settings_may_be_absent(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == {}
