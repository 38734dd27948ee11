"""What the host has: memory, free disk, programs that run containers."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CONTROL_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's memory limit stands: control groups version 2, and version 1."""
CONTAINER_PROGRAMS = ("docker", "podman", "srun", "enroot", "apptainer")
GPU_HOOKS = ("nvidia-ctk", "nvidia-container-runtime", "nvidia-container-cli")
"""Programs of NVIDIA's container toolkit: without one, docker and podman give no GPU to a container."""


@dataclass(frozen=True)
class HostMemory:
    """Memory that processes here may use, the container's limit included, and what is free of it now. 0 is unknown."""

    total_bytes: int
    available_bytes: int


def host_memory(meminfo: Path = MEMINFO, control_groups: tuple[Path, ...] = CONTROL_GROUPS) -> HostMemory:
    """Read from the kernel; nothing is raised where it does not say."""
    total, available = _meminfo(meminfo)
    limits = [limit for file in control_groups if (limit := _limit(file))]
    total = min([total, *limits]) if total else 0
    return HostMemory(total, min(available, total))


def _meminfo(file: Path) -> tuple[int, int]:
    try:
        lines = dict(line.split(":", 1) for line in file.read_text(encoding="ascii").splitlines() if ":" in line)
        return int(lines["MemTotal"].split()[0]) << 10, int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 0, 0


def _limit(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))  # version 2 says max, version 1 a number beyond any memory, for no limit
    except (OSError, ValueError):
        return 0


def free_disk_bytes(folder: Path) -> int:
    """Free bytes where `folder` is or would be made. Raises OSError."""
    return shutil.disk_usage(next(f for f in (folder.absolute(), *folder.absolute().parents) if f.exists())).free


def cpu_count() -> int:
    """Processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def container_programs() -> tuple[str, ...]:
    """Programs on PATH that start containers."""
    return tuple(name for name in CONTAINER_PROGRAMS if shutil.which(name))


def has_gpu_hook() -> bool:
    """Whether NVIDIA's container toolkit is here."""
    return any(shutil.which(name) for name in GPU_HOOKS)


def gib(count_bytes: float) -> str:
    """Bytes in words."""
    return f"{count_bytes / 2**30:.1f} GiB"
