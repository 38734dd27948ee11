"""Facts about the machine and the installed packages, for the report."""

import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
MEMINFO = Path("/proc/meminfo")


def machine_facts(cpuinfo: Path = CPUINFO, meminfo: Path = MEMINFO) -> dict[str, str]:
    """Processor, usable cores, memory, system and Python; what cannot be known is left out."""
    facts = {
        "cpu": _field(cpuinfo, "model name") or platform.processor(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or ""),
        "memory": _gibibytes(_field(meminfo, "MemTotal")),
        "load_average": " ".join(f"{v:.2f}" for v in os.getloadavg()),
        "system": platform.platform(),
        "python": platform.python_version(),
    }
    return {name: fact for name, fact in facts.items() if fact}


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """Installed versions; packages that are not installed are left out."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _field(file: Path, name: str) -> str:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _gibibytes(kibibytes: str) -> str:
    number = kibibytes.split()[0] if kibibytes else ""
    return f"{int(number) / 2**20:.1f} GiB" if number.isdigit() else ""
