"""Code of checkpoints: which files hold it, and when a tokenizer needs it."""

import pytest

from builder.checkpoint.remote_code import model_modules, tokenizer_modules

QWEN = {"auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}}


@pytest.mark.parametrize(
    ("settings", "config", "modules"),
    [
        (QWEN | {"tokenizer_class": "QWenTokenizer"}, {}, ("tokenization_qwen.py",)),
        (QWEN, {}, ("tokenization_qwen.py",)),
        ({}, QWEN, ("tokenization_qwen.py",)),
        (QWEN | {"tokenizer_class": "PreTrainedTokenizerFast"}, {}, ()),
        (
            {"auto_map": ["tokenization_x.XTokenizer", "tokenization_x_fast.XTokenizerFast"]},
            {},
            ("tokenization_x.py", "tokenization_x_fast.py"),
        ),
        ({"auto_map": {"AutoTokenizer": "owner/name--tokenization_y.Y"}}, {}, ("owner/name: tokenization_y.py",)),
        ({"tokenizer_class": "LlamaTokenizer"}, {"auto_map": {"AutoModelForCausalLM": "modeling_x.X"}}, ()),
        ({}, {}, ()),
    ],
)
def test_tokenizers(settings: dict[str, object], config: dict[str, object], modules: tuple[str, ...]) -> None:
    assert tokenizer_modules(settings, config) == modules


def test_models() -> None:
    auto_map = {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.X", "AutoTokenizer": "tokenization_x.T"}
    assert model_modules({"auto_map": auto_map}) == ("configuration_x.py", "modeling_x.py")
    assert model_modules({}) == ()
