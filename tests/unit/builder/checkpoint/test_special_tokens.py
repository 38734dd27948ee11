"""Special tokens from four files, and every token that ends an answer."""

import json
from pathlib import Path
from typing import Any

import pytest

from builder.checkpoint.special_tokens import SpecialToken, read_special_tokens
from builder.checkpoint.tokenizer import Tokenizer
from builder.checkpoint.vocabulary import Vocabulary

WORDS = {0: "<unk>", 1: "<s>", 2: "</s>", 3: "<|end|>", 4: "<|eot|>"}


def tokenizer(folder: Path, settings: dict[str, Any], **files: dict[str, Any]) -> Tokenizer:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return Tokenizer(folder, "", Vocabulary(WORDS), (), settings)


def test_texts_of_the_settings_win(tmp_path: Path) -> None:
    settings = {"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": False}, "pad_token": None}
    read = read_special_tokens(tokenizer(tmp_path, settings), {"bos_token_id": 4, "eos_token_id": 3}, ())
    assert read.named == {"bos_token": SpecialToken(1, "<s>"), "eos_token": SpecialToken(2, "</s>")}


def test_the_map_of_special_tokens_stands_in(tmp_path: Path) -> None:
    read = read_special_tokens(
        tokenizer(tmp_path, {"pad_token": None}, special_tokens_map={"pad_token": "<unk>", "bos_token": "<s>"}), {}, ()
    )
    assert read.named == {"bos_token": SpecialToken(1, "<s>"), "pad_token": SpecialToken(0, "<unk>")}


def test_the_model_s_ids_stand_in(tmp_path: Path) -> None:
    read = read_special_tokens(tokenizer(tmp_path, {}, generation_config={"pad_token_id": 3}), {"pad_token_id": 4, "bos_token_id": 1}, ())
    assert read.named == {"bos_token": SpecialToken(1, "<s>"), "pad_token": SpecialToken(3, "<|end|>")}


@pytest.mark.parametrize(
    ("settings", "end_ids", "expected"),
    [
        ({"eos_token": "<|eot|>"}, (3, 2), [2, 3, 4]),
        ({"eos_token": "<|eot|>"}, (4,), [4]),
        ({}, (300, 5), [5, 300]),
        ({"eos_token": "<none>"}, (9,), [9]),
        ({}, (), []),
    ],
)
def test_every_end_token_counts(tmp_path: Path, settings: dict[str, Any], end_ids: tuple[int, ...], expected: list[int]) -> None:
    read = read_special_tokens(tokenizer(tmp_path, settings), {}, end_ids)
    assert [token.token_id for token in read.end] == expected


def test_id_0_is_an_id_and_a_negative_one_is_none(tmp_path: Path) -> None:
    read = read_special_tokens(tokenizer(tmp_path, {}), {"bos_token_id": 0, "pad_token_id": -1, "unk_token_id": True}, ())
    assert read.named == {"bos_token": SpecialToken(0, "<unk>")}


def test_a_text_without_an_entry_is_unknown(tmp_path: Path) -> None:
    read = read_special_tokens(tokenizer(tmp_path, {"pad_token": "[PAD]", "bos_token": "<s>"}), {}, ())
    assert read.unknown == {"pad_token": SpecialToken(None, "[PAD]")}


def test_tokens_as_text() -> None:
    assert [str(SpecialToken(2, "</s>")), str(SpecialToken(9, "")), str(SpecialToken(None, "[PAD]"))] == ["2 ('</s>')", "9", "'[PAD]'"]
