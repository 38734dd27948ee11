"""The backend directory holds copies, and the environment leaves the repository as it is."""

from pathlib import Path

from builder.api import ServerNeeds
from builder.serving.installation import Installation
from builder.serving.layout import lay_out_backends, remove_byte_code, server_environment


def installation(root: Path) -> Installation:
    stub = root / "own" / "python" / "stub"
    stub.parent.mkdir(parents=True)
    stub.write_text("stub")
    return Installation(root / "bin" / "tritonserver", root / "own", (stub,), (root / "lib",), from_wheel=False)


def lane_backend(root: Path) -> Path:
    folder = root / "lane"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "model.py").write_text("one")
    (folder / "__pycache__" / "model.pyc").write_text("")
    return folder


def test_lane_backends_are_copied_beside_the_python_backend(tmp_path: Path) -> None:
    lane = lane_backend(tmp_path)
    made = lay_out_backends(installation(tmp_path), ServerNeeds({"tensorrtllm": lane}), tmp_path / "run")
    assert sorted(str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()) == ["python/stub", "tensorrtllm/model.py"]
    assert not any(p.is_symlink() for p in made.rglob("*"))


def test_laying_out_again_takes_the_new_files_only(tmp_path: Path) -> None:
    lane, found = lane_backend(tmp_path), installation(tmp_path)
    lay_out_backends(found, ServerNeeds({"tensorrtllm": lane}), tmp_path / "run")
    (lane / "model.py").rename(lane / "other.py")
    made = lay_out_backends(found, ServerNeeds({"tensorrtllm": lane}), tmp_path / "run")
    assert [p.name for p in (made / "tensorrtllm").iterdir()] == ["other.py"]


def test_a_lane_without_backends_uses_the_servers_own(tmp_path: Path) -> None:
    found = installation(tmp_path)
    assert lay_out_backends(found, ServerNeeds(), tmp_path / "run") == found.own_backends
    assert not (tmp_path / "run").exists()


def test_environment(tmp_path: Path) -> None:
    needs = ServerNeeds(environment={"OMP_NUM_THREADS": "2"})
    env = server_environment(installation(tmp_path), needs, {"LD_LIBRARY_PATH": "/theirs", "PATH": "/bin"})
    assert env["LD_LIBRARY_PATH"].split(":") == [str(tmp_path / "lib"), "/theirs"]
    assert env["PATH"].endswith(":/bin")
    assert env["HF_HUB_OFFLINE"] == "1"
    assert env["OMP_NUM_THREADS"] == "2"


def test_byte_code_is_removed_and_nothing_else(tmp_path: Path) -> None:
    folder = lane_backend(tmp_path)
    remove_byte_code(tmp_path)
    assert [p.name for p in folder.iterdir()] == ["model.py"]
