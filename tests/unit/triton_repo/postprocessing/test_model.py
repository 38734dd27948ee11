"""Postprocessing with a real tokenizer built on the spot."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")


@pytest.fixture
def model(pb_utils: Any, tmp_path: Path) -> Any:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0, "</s>": 1, "one": 2, "two": 3}, unk_token="<unk>"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", eos_token="</s>").save_pretrained(tmp_path)
    from triton_repo.postprocessing.model import TritonPythonModel

    served = TritonPythonModel()
    served.initialize({"model_config": json.dumps({"parameters": {"tokenizer_dir": {"string_value": str(tmp_path)}}})})
    return served


def request(pb_utils: Any, ids: Any, lengths: Any) -> Any:
    return pb_utils.Request(
        {"TOKENS_BATCH": np.array(ids, dtype=np.int32), "SEQUENCE_LENGTH": np.array(lengths, dtype=np.int32)}, ("OUTPUT",)
    )


def test_text_of_each_row_without_special_tokens(model: Any, pb_utils: Any):
    (response,) = model.execute([request(pb_utils, [[[2, 3, 1]], [[3, 0, 0]]], [[3], [1]])])
    assert response.arrays()["OUTPUT"].tolist() == [[b"one two"], [b"two"]]


def test_shapes_that_do_not_fit_are_refused(model: Any, pb_utils: Any):
    (response,) = model.execute([request(pb_utils, [[[2, 3]]], [[1, 1]])])
    assert response.failure.kind == pb_utils.TritonError.INVALID_ARG
