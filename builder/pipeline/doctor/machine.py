"""The machine: Python, memory, disk, GPUs, containers, the model hub."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from builder.hardware.host import HostMemory, container_programs, cpu_count, free_disk_bytes, gib, has_gpu_hook, host_memory
from builder.hardware.nvidia_smi import Gpu, NvidiaDriver
from builder.pipeline.doctor.check import Check

PYTHONS = ((3, 11), (3, 12))
OWN_PACKAGES = ("builder", "plugins", "triton_repo", "configs")
HUB = "https://huggingface.co"
HUB_TIMEOUT_S = 3.0


def machine_checks(driver: NvidiaDriver, memory: HostMemory, build_root: Path, *, network: bool) -> Iterable[Check]:
    """Everything that is no lane's own, in the order in which it is needed. The hub is tried only with `network`."""
    yield python_check(sys.version_info[:2])
    yield own_packages_check(OWN_PACKAGES)
    yield _memory(memory)
    yield disk_check(build_root)
    yield driver_check(driver)
    yield from (gpu_check(gpu) for gpu in driver.gpus)
    yield containers_check(driver, container_programs(), gpu_hook=has_gpu_hook())
    yield hub_check(network=network)


def read_memory() -> HostMemory:
    """The host's memory."""
    return host_memory()


def python_check(version: tuple[int, int]) -> Check:
    """The Python versions that the server's stub has."""
    found = f"{version[0]}.{version[1]} at {sys.prefix}"
    fits = version in PYTHONS
    return Check("Python", "build", fits, found, "" if fits else "make the environment with Python 3.11 or 3.12")


def own_packages_check(names: Iterable[str]) -> Check:
    """Whether the packages of this distribution are those that Python finds: their names are common words."""
    specs = {name: importlib.util.find_spec(name) for name in names}
    folders = {name: _folder(spec.origin, spec.submodule_search_locations) if spec else None for name, spec in specs.items()}
    home = folders.get("builder")
    strangers = [f"{name} from {folder or 'nowhere'}" for name, folder in folders.items() if folder != home]
    fix = "install trt-tandem in an environment of its own" if strangers else ""
    return Check("packages of Tandem", "build", not strangers, ", ".join(strangers) or str(home), fix)


def _folder(origin: str | None, locations: Iterable[str] | None) -> Path | None:
    place = Path(origin).parent if origin else next((Path(p) for p in locations or ()), None)
    return place.resolve().parent if place else None


def _memory(memory: HostMemory) -> Check:
    known = f"{gib(memory.total_bytes)}, {gib(memory.available_bytes)} of it free" if memory.total_bytes else "unknown"
    return Check("host memory", "info", True, f"{known}, {cpu_count()} processors")


def disk_check(build_root: Path) -> Check:
    """Free disk where engines are built."""
    try:
        return Check("disk", "info", True, f"{gib(free_disk_bytes(build_root))} free at {build_root}")
    except OSError as error:
        return Check("disk", "build", False, f"{build_root}: {error.strerror}", "name another folder with --build-root")


def driver_check(driver: NvidiaDriver) -> Check:
    """The NVIDIA driver; without one the lanes for GPUs plan but do not build."""
    fix = "only lanes for NVIDIA GPUs need it: install the driver, or give the container its GPUs"
    if driver.problem:
        return Check("NVIDIA driver", "info", False, driver.problem, fix)
    return Check("NVIDIA driver", "info", True, f"{driver.version}, GPUs: {len(driver.gpus)}")


def gpu_check(gpu: Gpu) -> Check:
    """One GPU and the word for it in a pair file."""
    name = f"GPU {gpu.index}"
    facts = f"{gpu.name}, {gib(gpu.memory_bytes)}, compute capability {gpu.compute_capability or 'unknown'}"
    if gpu.chip_names:
        return Check(name, "info", True, f"{facts}; hardware.chip: {' or '.join(gpu.chip_names)}")
    return Check(name, "info", False, f"{facts}; no row of configs/chips.yaml is like it", "add a row with its sources")


def containers_check(driver: NvidiaDriver, programs: tuple[str, ...], *, gpu_hook: bool) -> Check:
    """Programs that start containers, and what gives them the GPUs."""
    if not programs:
        return Check("containers", "info", False, "no docker, podman, srun, enroot or apptainer", "install one to run Triton's containers")
    found = ", ".join(programs)
    if driver.gpus and not gpu_hook and {"docker", "podman"} & set(programs):
        fix = "install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure && sudo systemctl restart docker"
        return Check("containers", "info", False, f"{found}, but no NVIDIA container toolkit", fix)
    return Check("containers", "info", True, found)


def hub_check(*, network: bool) -> Check:
    """Whether the model hub can be reached."""
    endpoint = os.environ.get("HF_ENDPOINT") or HUB
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        return Check(
            "model hub", "info", False, "HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE, or name checkpoint folders in the pair file"
        )
    if not network:
        return Check("model hub", "info", True, f"{endpoint} was not tried; --network tries it")
    return _reached(endpoint)


def _reached(endpoint: str) -> Check:
    place = urlsplit(endpoint)
    port = place.port or (80 if place.scheme == "http" else 443)
    try:
        socket.create_connection((place.hostname or "", port), timeout=HUB_TIMEOUT_S).close()
    except OSError as error:
        found = f"{endpoint} cannot be reached: {error.strerror or error}"
        return Check("model hub", "info", False, found, "name checkpoint folders in the pair file, or set HF_ENDPOINT to a mirror")
    return Check("model hub", "info", True, f"{endpoint} answers")
