"""The repository as written: complete, the same bytes each time, loadable sources."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builder.errors import RefusedError
from builder.packaging.plan import PackagePlan
from builder.packaging.repository import package

pytest.importorskip("tritonclient.grpc.model_config_pb2")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_same_plan_same_bytes(plan: PackagePlan, tmp_path: Path):
    plan = replace(plan, installed_at=tmp_path / "final")
    package(plan, tmp_path / "one")
    package(plan, tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_models_and_their_files(plan: PackagePlan, tmp_path: Path):
    package(plan, tmp_path / "out")
    files = content(tmp_path / "out")
    assert {name.split("/")[0] for name in files} == {
        "preprocessing",
        "postprocessing",
        "tensorrt_llm",
        "tensorrt_llm_draft",
        "tensorrt_llm_bls",
        "ensemble",
    }
    assert "tensorrt_llm_bls/1/triton_repo/common/draft_length.py" in files
    assert "tensorrt_llm_bls/1/triton_repo/tensorrt_llm_bls/loop.py" in files
    assert files["tensorrt_llm/1/.keep"] == b""
    assert not any("__pycache__" in name for name in files)


def test_tokenizer_files_only(plan: PackagePlan, tmp_path: Path):
    package(plan, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out" / "preprocessing" / "1" / "tokenizer").iterdir()}
    assert names == {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}


def test_configurations_name_the_final_place(plan: PackagePlan, tmp_path: Path):
    package(replace(plan, installed_at=tmp_path / "final"), tmp_path / "staged")
    text = (tmp_path / "staged" / "tensorrt_llm_bls" / "config.pbtxt").read_text()
    assert str(tmp_path / "final" / "preprocessing" / "1" / "tokenizer") in text
    assert "staged" not in text
    assert 'string_value: "2,7"' in text


@pytest.mark.parametrize(("draft", "parameter"), [(500, '{\n    string_value: "500"\n'), (None, "{\n  }")])
def test_the_orchestrator_knows_the_ids_that_both_engines_have(
    plan: PackagePlan, tmp_path: Path, write_engine: Callable[..., Path], draft: int | None, parameter: str
):
    write_engine("draft", vocab_size=draft)
    package(plan, tmp_path / "out")
    text = (tmp_path / "out" / "tensorrt_llm_bls" / "config.pbtxt").read_text()
    assert f'key: "shared_vocab_size"\n  value {parameter}' in text


def test_without_a_draft_engine_there_is_no_draft_model(plan: PackagePlan, tmp_path: Path):
    package(replace(plan, draft_engine_dir=None), tmp_path / "out")
    assert not (tmp_path / "out" / "tensorrt_llm_draft").exists()


def test_a_full_folder_is_refused(plan: PackagePlan, tmp_path: Path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("precious")
    with pytest.raises(RefusedError) as caught:
        package(plan, out)
    assert caught.value.finding.code == "PKG-DESTINATION"
    assert content(out) == {"mine": b"precious"}


@pytest.mark.parametrize("model", ["preprocessing", "postprocessing", "tensorrt_llm_bls"])
def test_packaged_sources_import_from_beside_the_model(plan: PackagePlan, tmp_path: Path, model: str):
    package(plan, tmp_path / "out")
    version = tmp_path / "out" / model / "1"
    (tmp_path / "triton_python_backend_utils.py").write_text("")
    paths = f"sys.path.insert(0, {str(tmp_path)!r}); sys.path.append({str(version)!r})"
    program = f"import sys; {paths}; import model, triton_repo; print(triton_repo.__file__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == str(version / "triton_repo" / "__init__.py")
