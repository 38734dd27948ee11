"""Pure parts of preprocessing."""

import pytest

from triton_repo.preprocessing.tokens import Settings, prompt_ids, text_of, word_lists


class Letters:
    """One token a letter."""

    bos_token_id = 0
    eos_token_id = None
    pad_token_id = None

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [0] * add_special_tokens + [ord(letter) for letter in text]

    def apply_chat_template(self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool) -> str:
        return f"<{conversation[0]['role']}>{conversation[0]['content']}"


def test_special_tokens_only_without_a_template():
    assert prompt_ids(Letters(), "a", Settings()) == [0, 97]
    assert prompt_ids(Letters(), "a", Settings(add_special_tokens=False)) == [97]
    assert prompt_ids(Letters(), "a", Settings(apply_chat_template=True)) == [ord(letter) for letter in "<user>a"]


def test_begin_token_stands_once():
    assert prompt_ids(Letters(), "\0a", Settings()) == [0, 97]
    assert prompt_ids(Letters(), "\0", Settings()) == [0]
    assert prompt_ids(Letters(), "aa", Settings()) == [0, 97, 97]
    assert prompt_ids(Letters(), "\0a", Settings(add_special_tokens=False)) == [0, 97]


def test_an_empty_prompt_is_refused():
    with pytest.raises(ValueError, match="no tokens"):
        prompt_ids(Letters(), "", Settings(add_special_tokens=False))


def test_rows_of_word_lists_are_padded():
    assert word_lists(Letters(), [["ab", ""], []]).tolist() == [[[97, 98], [2, -1]], [[0, 0], [-1, -1]]]


def test_text_of_takes_both_kinds_of_strings():
    assert (text_of("a"), text_of(b"a")) == ("a", "a")
