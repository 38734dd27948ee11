"""The host's memory, disk and container programs, read from files that a test writes."""

from pathlib import Path

import pytest

from builder.hardware.host import HostMemory, container_programs, cpu_count, free_disk_bytes, has_gpu_hook, host_memory

MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    9000000 kB\n"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("max", HostMemory(16000000 << 10, 9000000 << 10)),
        ("4294967296", HostMemory(4 << 30, 4 << 30)),
        ("9223372036854771712", HostMemory(16000000 << 10, 9000000 << 10)),
        (None, HostMemory(16000000 << 10, 9000000 << 10)),
    ],
    ids=["no limit", "limited container", "no limit in version 1", "no control groups"],
)
def test_memory_is_what_the_container_may_use(tmp_path: Path, limit: str | None, expected: HostMemory) -> None:
    (tmp_path / "meminfo").write_text(MEMINFO)
    if limit is not None:
        (tmp_path / "memory.max").write_text(f"{limit}\n")
    assert host_memory(tmp_path / "meminfo", (tmp_path / "memory.max",)) == expected


@pytest.mark.parametrize("text", [None, "MemTotal: 5 kB\n", "MemTotal: x kB\nMemAvailable: 1 kB\n"], ids=["no file", "half", "no number"])
def test_memory_that_is_not_said_is_unknown(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "meminfo").write_text(text)
    assert host_memory(tmp_path / "meminfo", ()) == HostMemory(0, 0)


def test_disk_of_a_folder_that_is_not_made_yet(tmp_path: Path) -> None:
    assert free_disk_bytes(tmp_path / "a" / "b") > 0
    assert not (tmp_path / "a").exists()


def test_container_programs_and_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (container_programs(), has_gpu_hook()) == ((), False)
    for name in ("podman", "nvidia-ctk"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert (container_programs(), has_gpu_hook()) == (("podman",), True)


def test_processors() -> None:
    assert cpu_count() >= 1
