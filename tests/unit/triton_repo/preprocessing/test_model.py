"""Preprocessing with a real tokenizer built on the spot."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

OUTPUTS = ("INPUT_ID", "REQUEST_INPUT_LEN", "OUT_END_ID", "OUT_PAD_ID", "STOP_WORDS_IDS", "BAD_WORDS_IDS", "REQUEST_OUTPUT_LEN")
WORDS = ["<unk>", "<s>", "</s>", "one", "two", "three", "user", "assistant"]
TEMPLATE = (
    "{{ bos_token }} {% for m in messages %}{{ m['role'] + ' ' + m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}{{ ' assistant' }}{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    return folder


@pytest.fixture
def model(pb_utils: Any, tokenizer_dir: Path) -> Any:
    from triton_repo.preprocessing.model import TritonPythonModel

    served = TritonPythonModel()
    served.initialize({"model_config": json.dumps({"parameters": {"tokenizer_dir": {"string_value": str(tokenizer_dir)}}})})
    return served


def answer(model: Any, pb_utils: Any, queries: list[str], **inputs: Any) -> Any:
    rows = np.array([[query.encode()] for query in queries], dtype=np.object_)
    tensors = {"QUERY": rows, "REQUEST_OUTPUT_LEN": np.full((len(queries), 1), 8, dtype=np.int32), **inputs}
    (response,) = model.execute([pb_utils.Request(tensors, OUTPUTS)])
    return response


def test_ids_with_special_tokens(model: Any, pb_utils: Any):
    arrays = answer(model, pb_utils, ["one two"]).arrays()
    assert arrays["INPUT_ID"].tolist() == [[1, 3, 4]]
    assert arrays["REQUEST_INPUT_LEN"].tolist() == [[3]]
    assert (arrays["OUT_END_ID"].tolist(), arrays["OUT_PAD_ID"].tolist()) == ([[2]], [[2]])


def test_rows_are_padded(model: Any, pb_utils: Any):
    arrays = answer(model, pb_utils, ["one", "one two three"]).arrays()
    assert arrays["INPUT_ID"].tolist() == [[1, 3, 2, 2], [1, 3, 4, 5]]
    assert arrays["REQUEST_INPUT_LEN"].tolist() == [[2], [4]]


def test_chat_template_brings_its_own_special_tokens(model: Any, pb_utils: Any):
    """The tokenizer adds id 1 by itself and the template's text begins with it, too: one of them is enough (user reports, case 8)."""
    arrays = answer(model, pb_utils, ["one"], APPLY_CHAT_TEMPLATE=np.array([[True]])).arrays()
    assert arrays["INPUT_ID"].tolist() == [[1, 6, 3, 7]]


def test_ids_equal_the_template_s_own_tokenization(model: Any, pb_utils: Any, tokenizer_dir: Path):
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_dir)
    message = [{"role": "user", "content": "two three"}]
    own = tokenizer.apply_chat_template(message, tokenize=True, add_generation_prompt=True, return_dict=False)
    arrays = answer(model, pb_utils, ["two three"], APPLY_CHAT_TEMPLATE=np.array([[True]])).arrays()
    assert arrays["INPUT_ID"].tolist() == [list(own)]


@pytest.mark.parametrize("text", ["one two", "<s> one two"])
def test_a_plain_prompt_begins_with_one_begin_token(model: Any, pb_utils: Any, text: str):
    """The second is what a client sends that put its messages through the template itself."""
    assert answer(model, pb_utils, [text]).arrays()["INPUT_ID"].tolist() == [[1, 3, 4]]


def test_word_lists_have_no_special_tokens(model: Any, pb_utils: Any):
    words = np.array([[b"two three", b"one"]], dtype=np.object_)
    arrays = answer(model, pb_utils, ["one"], STOP_WORDS_DICT=words).arrays()
    assert arrays["STOP_WORDS_IDS"].tolist() == [[[4, 5, 3], [2, 3, -1]]]
    assert arrays["BAD_WORDS_IDS"].tolist() == [[[0], [-1]]]


def test_client_ids_win(model: Any, pb_utils: Any):
    arrays = answer(model, pb_utils, ["one"], END_ID=np.array([[-1]], dtype=np.int32)).arrays()
    assert arrays["OUT_END_ID"].tolist() == [[-1]]


def test_bad_text_fails_alone(model: Any, pb_utils: Any):
    good = {"QUERY": np.array([[b"one"]], dtype=np.object_), "REQUEST_OUTPUT_LEN": np.array([[8]], dtype=np.int32)}
    bad = {**good, "QUERY": np.array([[b"\xff"]], dtype=np.object_)}
    first, second = model.execute([pb_utils.Request(bad, OUTPUTS), pb_utils.Request(good, OUTPUTS)])
    assert first.failure.kind == pb_utils.TritonError.INVALID_ARG
    assert "UTF-8" in first.failure.text
    assert second.failure is None
