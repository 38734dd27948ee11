"""Checkpoints by hub id, against a small server that speaks the few routes of a hub that are needed."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builder.checkpoint import digest_folder, known_digest, read_checkpoint
from builder.checkpoint.hub_folders import hub_source
from builder.checkpoint.locate import ModelAccess, fetch_checkpoint, locate_checkpoint
from builder.checkpoint.safetensors import MAX_HEADER_BYTES
from builder.errors import MissingError, RefusedError, TandemError
from tests.unit.builder.conftest import COMMIT, Hub

pytest.importorskip("huggingface_hub")


def access_of(hub: Hub, tmp_path: Path, *, offline: bool = False) -> ModelAccess:
    return ModelAccess(offline=offline, hub_cache=tmp_path / "cache", endpoint=hub.endpoint)


def refused(text: str, tmp_path: Path, access: ModelAccess) -> TandemError:
    with pytest.raises(TandemError) as caught:
        locate_checkpoint(text, tmp_path, "target", access)
    assert caught.value.finding.field == "target.checkpoint"
    return caught.value


def test_headers_are_enough_for_a_plan(hub: Hub, tmp_path: Path) -> None:
    weights = hub.folder / "model.safetensors"
    with weights.open("r+b") as stream:
        stream.truncate(weights.stat().st_size)
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    read, published = read_checkpoint(folder, "target.checkpoint"), read_checkpoint(hub.folder, "target.checkpoint")
    assert (read.shape, read.findings) == (published.shape, ())
    assert (folder / "model.safetensors").stat().st_size == weights.stat().st_size
    ranges = [asked for path, asked in hub.requests if path.endswith("model.safetensors")]
    assert len(ranges) == 1
    assert ranges[0].startswith("bytes=0-")


def test_the_commit_is_pinned_and_recorded(hub: Hub, tmp_path: Path) -> None:
    source = hub_source(locate_checkpoint("acme/tiny@v1", tmp_path, "target", access_of(hub, tmp_path)))
    assert source is not None
    assert (source.id, source.commit, source.headers_only) == ("acme/tiny", COMMIT, True)


def test_headers_are_no_weights(hub: Hub, tmp_path: Path) -> None:
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    assert known_digest(folder, None) is None
    with pytest.raises(MissingError) as caught:
        digest_folder(folder)
    assert caught.value.finding.code == "CKPT-HUB-HEADERS"


def test_a_build_fetches_the_snapshot_of_the_same_commit(hub: Hub, tmp_path: Path) -> None:
    access = access_of(hub, tmp_path)
    folder = fetch_checkpoint(locate_checkpoint("acme/tiny", tmp_path, "target", access), "target", access)
    assert digest_folder(folder) == digest_folder(hub.folder)
    source = hub_source(folder)
    assert source is not None
    assert (source.commit, source.headers_only) == (COMMIT, False)
    assert locate_checkpoint("acme/tiny", tmp_path, "target", access) == folder
    assert fetch_checkpoint(folder, "target", access) == folder


def test_offline_uses_what_was_fetched_and_asks_nobody(hub: Hub, tmp_path: Path) -> None:
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    hub.requests.clear()
    offline = access_of(hub, tmp_path, offline=True)
    assert locate_checkpoint("acme/tiny", tmp_path, "target", offline) == folder
    assert locate_checkpoint(f"acme/tiny@{COMMIT}", tmp_path, "target", offline) == folder
    with pytest.raises(MissingError) as caught:
        fetch_checkpoint(folder, "target", offline)
    assert caught.value.finding.code == "CKPT-HUB-OFFLINE"
    assert hub.requests == []


def test_offline_without_a_copy(hub: Hub, tmp_path: Path) -> None:
    error = refused("acme/tiny", tmp_path, access_of(hub, tmp_path, offline=True))
    assert isinstance(error, MissingError)
    assert error.finding.code == "CKPT-HUB-OFFLINE"
    assert str(error) == (
        f"acme/tiny (revision main) is not on this machine (searched {tmp_path / 'cache'}), "
        "and the hub may not be asked (--offline or HF_HUB_OFFLINE)."
    )
    assert hub.requests == []


def test_the_environment_can_forbid_the_network(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert refused("acme/tiny", tmp_path, access_of(hub, tmp_path)).finding.code == "CKPT-HUB-OFFLINE"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((404, "RepoNotFound"), "CKPT-HUB-UNKNOWN"),
        ((401, "RepoNotFound"), "CKPT-HUB-UNKNOWN"),
        ((401, ""), "CKPT-HUB-GATED"),
        ((403, "GatedRepo"), "CKPT-HUB-GATED"),
        ((403, ""), "CKPT-HUB-GATED"),
        ((503, ""), "CKPT-HUB-UNREACHABLE"),
    ],
)
def test_answers_of_the_hub(hub: Hub, tmp_path: Path, answer: tuple[int, str], code: str) -> None:
    hub.refuse = answer
    error = refused("acme/tiny", tmp_path, access_of(hub, tmp_path))
    assert error.finding.code == code
    assert isinstance(error, MissingError if code == "CKPT-HUB-UNREACHABLE" else RefusedError)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            (403, "GatedRepo"),
            "acme/tiny is gated: its owner grants access on its page, and this machine has no token of an account that has it.",
        ),
        ((404, "RepoNotFound"), "The hub has no model acme/tiny, or it is private; there is no folder of that name either."),
    ],
    ids=["gated", "unknown"],
)
def test_sentences_about_the_hub(hub: Hub, tmp_path: Path, answer: tuple[int, str], sentence: str) -> None:
    hub.refuse = answer
    assert str(refused("acme/tiny", tmp_path, access_of(hub, tmp_path))) == sentence


def test_gated_files_of_a_listed_model(hub: Hub, tmp_path: Path) -> None:
    hub.refuse_files = (403, "GatedRepo")
    assert refused("acme/tiny", tmp_path, access_of(hub, tmp_path)).finding.code == "CKPT-HUB-GATED"
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_unknown_revision_is_named(hub: Hub, tmp_path: Path) -> None:
    error = refused("acme/tiny@banana", tmp_path, access_of(hub, tmp_path))
    assert str(error) == "acme/tiny has no revision banana on the hub."


def test_nobody_listens(hub: Hub, tmp_path: Path) -> None:
    access = ModelAccess(hub_cache=tmp_path / "cache", endpoint="http://127.0.0.1:9")
    assert refused("acme/tiny", tmp_path, access).finding.code == "CKPT-HUB-UNREACHABLE"


def test_scales_of_the_cache_are_fetched_with_the_header(hub: Hub, tmp_path: Path, write_scales: Callable[[Path], Path]) -> None:
    write_scales(hub.folder)
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    assert read_checkpoint(folder, "target.checkpoint").stored.kv_scales == "good"


def test_a_server_that_ignores_ranges_is_read_no_further_than_asked(hub: Hub, tmp_path: Path) -> None:
    """The header stands at the beginning, so that the whole file's beginning is an answer; it is no reason to read all of it."""
    hub.ignores_ranges = True
    weights = hub.folder / "model.safetensors"
    with weights.open("r+b") as stream:
        header = json.loads(stream.read()[8 : 8 + int.from_bytes(weights.read_bytes()[:8], "little")])
        last = max(entry["data_offsets"][1] for entry in header.values())
        header["padding"] = {"dtype": "U8", "shape": [64 << 20], "data_offsets": [last, last + (64 << 20)]}
        text = json.dumps(header).encode()
        stream.seek(0)
        stream.write(len(text).to_bytes(8, "little") + text)
        stream.truncate(8 + len(text) + last + (64 << 20))
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    assert read_checkpoint(folder, "target.checkpoint").shape.layers == 4
    assert hub.sent_bytes < 32 << 20, "most of the file's 64 MiB never left the server"


def test_a_server_that_ignores_ranges_is_not_asked_for_scales(hub: Hub, tmp_path: Path, write_scales: Callable[[Path], Path]) -> None:
    """The file's beginning is not the scales' bytes."""
    write_scales(hub.folder)
    hub.ignores_ranges = True
    error = refused("acme/tiny", tmp_path, access_of(hub, tmp_path))
    assert error.finding.code == "CKPT-HUB-UNREACHABLE"
    assert "its server sends whole files where a part of model-00002-of-00002.safetensors was asked for" in str(error)
    assert not list((tmp_path / "cache").rglob("*.safetensors"))


def test_a_part_that_is_shorter_than_asked(hub: Hub, tmp_path: Path) -> None:
    hub.cuts_to_bytes = 20
    assert "model.safetensors ends after 20 bytes, before byte" in str(refused("acme/tiny", tmp_path, access_of(hub, tmp_path)))


def test_a_header_longer_than_the_format_s_is_not_fetched(hub: Hub, tmp_path: Path) -> None:
    weights = hub.folder / "model.safetensors"
    weights.write_bytes((MAX_HEADER_BYTES + 1).to_bytes(8, "little"))
    with weights.open("r+b") as stream:
        stream.truncate(MAX_HEADER_BYTES + 100)
    folder = locate_checkpoint("acme/tiny", tmp_path, "target", access_of(hub, tmp_path))
    assert len([asked for path, asked in hub.requests if path.endswith("model.safetensors")]) == 1
    with pytest.raises(RefusedError, match=f"header of {MAX_HEADER_BYTES + 1} bytes"):
        read_checkpoint(folder, "target.checkpoint")


def test_the_name_that_was_meant_stands_in_the_hub_s_refusal(hub: Hub, tmp_path: Path) -> None:
    models = tmp_path / "models"
    (models / "acme" / "tinier-instruct").mkdir(parents=True)
    (models / "acme" / "tinier-instruct" / "config.json").write_text("{}")
    access = replace(access_of(hub, tmp_path), models_dir=models)
    error = refused("acme/tinier", tmp_path, access)
    assert error.finding.code == "CKPT-HUB-UNKNOWN"
    assert str(error).endswith(f"there is no folder of that name either; {models} (--models) does not hold it either.")
    assert error.finding.fix.startswith("set target.checkpoint to acme/tinier-instruct, which is there; or correct the name")


def test_without_the_package(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", None)
    error = refused("acme/tiny", tmp_path, access_of(hub, tmp_path))
    assert (error.finding.code, error.finding.needed) == ("PACKAGE-MISSING", "huggingface_hub")
    assert str(error) == "acme/tiny is a hub id, and huggingface_hub is not installed."
