"""Writes the whole model repository into an empty folder."""

import errno
import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

from builder.errors import MissingError, RefusedError, StageError
from builder.packaging import models
from builder.packaging.checks import check, sequence_limit, shared_vocab_size
from builder.packaging.placeholders import check_placeholders
from builder.packaging.plan import PackagePlan
from builder.packaging.render import render
from builder.packaging.values import Model

SERVED_PACKAGE = "triton_repo"
TOKENIZER_SUFFIXES = (".json", ".jinja", ".model", ".txt")
ENTRY = '''"""Entry of the served model {name}: its sources lie beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from triton_repo.{name}.model import TritonPythonModel  # noqa: E402

__all__ = ["TritonPythonModel"]
'''


def package(plan: PackagePlan, destination: Path) -> None:
    """Write the repository; the same plan and sources give the same bytes.

    Raises FindingsError `PKG-...` when the plan does not fit the engines, RefusedError `PKG-DESTINATION` when the folder is not empty,
    MissingError when the sources of the served models or tritonclient are missing, StageError `PKG-WRITE` when writing fails; a full
    disk stays the OSError that it is.
    """
    target, draft = check(plan)
    if destination.exists() and any(destination.iterdir()):
        raise RefusedError("PKG-DESTINATION", f"{destination} is not empty", found=str(destination), needed="an empty folder")
    plan = replace(plan, installed_at=(plan.installed_at or destination).absolute())
    end_ids = target.end_ids if plan.end_ids is None else plan.end_ids
    bls = models.tensorrt_llm_bls(
        plan, end_ids=end_ids, max_sequence_tokens=sequence_limit(plan, target), shared_vocab_size=shared_vocab_size(target, draft)
    )
    try:
        _write(plan, bls, destination)
        check_placeholders(destination)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StageError("PKG-WRITE", f"the model repository cannot be written: {error}") from error


def _write(plan: PackagePlan, bls: Model, destination: Path) -> None:
    sources = plan.sources or _installed_sources()
    for model in (models.preprocessing(plan), models.postprocessing(plan), bls):
        _write_python_model(model, sources, destination)
    _copy_tokenizer(plan.tokenizer_dir, destination / "preprocessing" / "1" / "tokenizer")
    engines = [models.tensorrt_llm(plan)] + ([models.tensorrt_llm_draft(plan)] if plan.draft_engine_dir is not None else [])
    for model in (*engines, models.ensemble(plan)):
        version = _write_config(model, destination)
        (version / ".keep").write_bytes(b"")  # Triton wants a version folder, and some transports drop empty ones


def _write_config(model: Model, destination: Path) -> Path:
    version = destination / model.name / "1"
    version.mkdir(parents=True)
    (version.parent / "config.pbtxt").write_text(render(model), encoding="utf-8")
    return version


def _write_python_model(model: Model, sources: Path, destination: Path) -> None:
    version = _write_config(model, destination)
    (version / "model.py").write_text(ENTRY.format(name=model.name), encoding="utf-8")
    beside = version / SERVED_PACKAGE
    beside.mkdir()
    shutil.copyfile(sources / "__init__.py", beside / "__init__.py")
    for folder in ("common", model.name):
        _copy_sources(sources / folder, beside / folder)


def _copy_sources(source: Path, destination: Path) -> None:
    destination.mkdir()
    for path in sorted(source.glob("*.py")):
        shutil.copyfile(path, destination / path.name)


def _copy_tokenizer(source: Path, destination: Path) -> None:
    """Tokenizer files only: no weights, no code of the checkpoint."""
    destination.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix in TOKENIZER_SUFFIXES and not path.name.endswith(".index.json"):
            shutil.copyfile(path, destination / path.name)


def _installed_sources() -> Path:
    """Folder of the package `triton_repo`, found without importing it."""
    spec = importlib.util.find_spec(SERVED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingError(
            "PKG-SOURCES", f"the sources of the served models (package {SERVED_PACKAGE}) are not installed", fix="pip install trt-tandem"
        )
    return Path(spec.submodule_search_locations[0])
