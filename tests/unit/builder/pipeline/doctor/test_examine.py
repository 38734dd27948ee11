"""The whole examination on this machine, with a driver that is a script."""

from pathlib import Path

import pytest

from builder import registry
from builder.errors import RefusedError
from builder.pipeline.doctor import examine


def test_every_lane_is_judged_and_every_gap_has_a_way_out(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert [lane.name for lane in found.lanes] == list(registry.names(registry.ENGINES))
    assert found.judged.name == "openvino"
    gaps = [c for c in (*found.machine, *found.server, *(c for lane in found.lanes for c in lane.checks)) if not c.present]
    assert all(check.found and check.fix for check in gaps)


def test_as_json(tmp_path: Path) -> None:
    data = examine(tmp_path, "openvino").as_dict()
    assert data["schema"] == 2
    assert (data["lane"], data["ok"]) == ("openvino", True)
    assert set(data) == {"schema", "ok", "lane", "driver", "gpus", "host_memory", "machine", "server", "lanes", "extras"}
    assert all(set(check) == {"name", "step", "present", "found", "fix"} for check in data["machine"])


def test_gpus_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "0, NVIDIA L4, 23034, 570.1, 8.9"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    data = examine(tmp_path).as_dict()
    assert data["driver"] == "570.1"
    assert data["gpus"] == [{"index": 0, "name": "NVIDIA L4", "memory_bytes": 23034 << 20, "compute_capability": "8.9", "chips": ["l4"]}]
    assert data["ok"]  # the default lane runs on the processor, whatever GPU is here


def test_a_lane_that_no_plugin_has(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="no plug-in is called openvine; did you mean openvino"):
        examine(tmp_path, "openvine")
