"""Where a checkpoint lies, without a network."""

from pathlib import Path

import pytest

from builder.checkpoint.hub_folders import HubId, hub_source, parse_hub_id
from builder.checkpoint.locate import ModelAccess, fetch_checkpoint, locate_checkpoint
from builder.errors import MissingError, RefusedError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_folder_relative_to_the_pair_file(tmp_path: Path) -> None:
    folder = tmp_path / "models" / "tiny"
    folder.mkdir(parents=True)
    (tmp_path / "pairs").mkdir()
    assert locate_checkpoint("../models/tiny", tmp_path / "pairs", "target", ModelAccess(offline=True)) == folder
    assert locate_checkpoint(str(folder), tmp_path / "pairs", "target", ModelAccess(offline=True)) == folder
    assert fetch_checkpoint(folder, "target", ModelAccess(offline=True)) == folder


def test_folder_before_the_folder_of_models(tmp_path: Path) -> None:
    for root in ("here", "models"):
        (tmp_path / root / "acme" / "tiny").mkdir(parents=True)
    access = ModelAccess(models_dir=tmp_path / "models", offline=True)
    assert locate_checkpoint("acme/tiny", tmp_path / "here", "target", access) == tmp_path / "here/acme/tiny"
    assert locate_checkpoint("acme/tiny", tmp_path, "target", access) == tmp_path / "models/acme/tiny"
    assert locate_checkpoint("acme/tiny@v1", tmp_path, "target", access) == tmp_path / "models/acme/tiny"


@pytest.mark.parametrize("text", ["./acme/tiny", "/none/tiny", "tiny", "a/b/c", "~/tiny"])
def test_a_path_that_is_not_there_is_no_hub_id(tmp_path: Path, text: str) -> None:
    expected = (tmp_path / Path(text).expanduser()).resolve()
    assert locate_checkpoint(text, tmp_path, "target", ModelAccess(offline=True, hub_cache=tmp_path)) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a" * 300, "File name too long"),
        ("x/" + "b" * 250, "a hub's names have at most 200 letters"),
        ("a\0b", "embedded null byte"),
    ],
)
def test_what_can_be_no_path(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        locate_checkpoint(text, tmp_path, "draft", ModelAccess(offline=True, hub_cache=tmp_path))
    finding = caught.value.finding
    assert (finding.code, finding.field) == ("CKPT-MISSING", "draft.checkpoint")
    assert finding.message.endswith(f"cannot be the name of a checkpoint: {reason}")
    assert len(finding.message) < 160


def test_a_name_that_no_model_of_the_folder_has(tmp_path: Path) -> None:
    models = tmp_path / "models"
    (models / "acme" / "tiny-instruct").mkdir(parents=True)
    (models / "acme" / "tiny-instruct" / "config.json").write_text("{}")
    access = ModelAccess(models_dir=models, offline=True, hub_cache=tmp_path / "cache")
    with pytest.raises(RefusedError) as refused:
        locate_checkpoint("tiny", tmp_path, "draft", access)
    finding = refused.value.finding
    assert finding.message == f"there is no folder {tmp_path / 'tiny'}, and none of that name in {models} (--models)"
    assert (finding.code, finding.fix) == ("CKPT-MISSING", "set draft.checkpoint to acme/tiny-instruct")
    with pytest.raises(MissingError) as missing:
        locate_checkpoint("acme/tiny", tmp_path, "target", access)
    finding = missing.value.finding
    assert f"(searched {tmp_path / 'cache'} and {models})" in finding.message
    assert finding.fix.startswith("set target.checkpoint to acme/tiny-instruct, which is there; or run once without --offline")
    assert locate_checkpoint("acme/tiny-instruct", tmp_path, "target", access) == models / "acme" / "tiny-instruct"


def test_the_environment_s_hub_is_read_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://one")
    assert ModelAccess().hub_endpoint == "http://one"
    assert ModelAccess(endpoint="http://two").hub_endpoint == "http://two"
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert ModelAccess().hub_endpoint is None


def test_a_folder_misspelt_beside_others_is_no_hub_id(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "smollm2").mkdir(parents=True)
    assert locate_checkpoint("checkpoints/smollm", tmp_path, "target", ModelAccess(offline=True)) == tmp_path / "checkpoints/smollm"


def test_snapshot_in_the_cache_of_the_hub(tmp_path: Path) -> None:
    root = tmp_path / "models--acme--tiny"
    (root / "snapshots" / COMMIT).mkdir(parents=True)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(COMMIT)
    access = ModelAccess(offline=True, hub_cache=tmp_path)
    with pytest.raises(MissingError):
        locate_checkpoint("acme/tiny", tmp_path, "draft", access)
    (root / "snapshots" / COMMIT / "model.safetensors").write_bytes(b"")
    folder = locate_checkpoint("acme/tiny", tmp_path, "draft", access)
    assert folder == root / "snapshots" / COMMIT
    source = hub_source(folder)
    assert source is not None
    assert (source.id, source.commit, source.headers_only) == ("acme/tiny", COMMIT, False)
    assert hub_source(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("acme/tiny", HubId("acme/tiny")),
        ("acme/tiny-1.5B@refs/pr/3", HubId("acme/tiny-1.5B", "refs/pr/3")),
        ("tiny", None),
        ("a/b/c", None),
        ("../tiny", None),
    ],
)
def test_hub_ids(text: str, expected: HubId | None) -> None:
    assert parse_hub_id(text) == expected
