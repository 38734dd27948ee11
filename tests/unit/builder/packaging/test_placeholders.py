"""Configurations that still hold a template's placeholders (user reports, case 6)."""

from pathlib import Path

import pytest

from builder.errors import FindingsError
from builder.packaging.placeholders import check_placeholders

TARGET = """\
name: "tensorrt_llm"
dynamic_batching {
  default_queue_policy { max_queue_size: ${max_queue_size} }
}
output [
  {
    name: "context_logits"
    data_type: ${logits_datatype}
  }
]
"""
DRAFT = """\
name: "tensorrt_llm_draft"
parameters: {
  key: "gpt_model_path"
  value: {
    string_value: "${engine_dir}"
  }
}
"""


def write(repository: Path, **configs: str) -> Path:
    for name, text in configs.items():
        (repository / name).mkdir(parents=True)
        (repository / name / "config.pbtxt").write_text(text)
    return repository


def test_every_placeholder_is_named_with_file_line_and_key(tmp_path: Path) -> None:
    repository = write(tmp_path, tensorrt_llm=TARGET, tensorrt_llm_draft=DRAFT, preprocessing='name: "preprocessing"\n')
    with pytest.raises(FindingsError) as refused:
        check_placeholders(repository)
    found = [(Path(f.file).parent.name, f.line, f.field, f.found) for f in refused.value.findings]
    assert found == [
        ("tensorrt_llm", 3, "max_queue_size", "${max_queue_size}"),
        ("tensorrt_llm", 8, "data_type", "${logits_datatype}"),
        ("tensorrt_llm_draft", 5, "gpt_model_path", "${engine_dir}"),
    ]
    assert f"{repository}/tensorrt_llm/config.pbtxt:3: max_queue_size still holds the placeholder" in refused.value.findings[0].message


def test_a_filled_repository_passes(tmp_path: Path) -> None:
    check_placeholders(write(tmp_path, preprocessing='name: "preprocessing"\nmax_batch_size: 8\nprice: "5 $"\n'))
