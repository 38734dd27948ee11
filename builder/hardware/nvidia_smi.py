"""NVIDIA GPUs of this machine, as `nvidia-smi` lists them."""

import shutil
import subprocess
from dataclasses import dataclass

from builder.hardware.chips import Chip, chips

PROGRAM = "nvidia-smi"
TIMEOUT_S = 30.0
FIELDS = ("index", "name", "memory.total", "driver_version", "compute_cap")
"""The last is not known to drivers before 510; they are asked again without it."""
SAME_MEMORY = 0.01
"""Memory of one chip differs by less from driver to driver; chips of different sizes differ by more."""


@dataclass(frozen=True)
class Gpu:
    """One GPU. `memory_bytes` 0 and `compute_capability` "" where the driver does not say."""

    index: int
    name: str
    memory_bytes: int
    compute_capability: str

    def as_dict(self) -> dict[str, object]:
        return {**self.__dict__, "chips": list(self.chip_names)}

    @property
    def chip_names(self) -> tuple[str, ...]:
        """Rows of configs/chips.yaml that it may be: often one, two where boards differ in links and rates alone."""
        return tuple(chip.name for chip in chips_of(self))


@dataclass(frozen=True)
class NvidiaDriver:
    """The driver and its GPUs; `problem` says why there are none."""

    version: str = ""
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""


def read_driver() -> NvidiaDriver:
    """Ask `nvidia-smi`; a driver that is absent, broken or hangs is a `problem`, never an error."""
    program = shutil.which(PROGRAM)
    if program is None:
        return NvidiaDriver(problem=f"no {PROGRAM}")
    found = _ask(program, FIELDS)
    if found.problem and "compute_cap" in found.problem:
        found = _ask(program, FIELDS[:-1])
    return found


def chips_of(gpu: Gpu) -> tuple[Chip, ...]:
    """The rows with this compute capability and memory; of several, those that share most words with the GPU's name."""
    rows = [chip for chip in chips().values() if chip.compute_capability and _same_size(gpu, chip)]
    words = set(gpu.name.lower().split())
    shared = {chip.name: len(words & set(chip.title.lower().split())) for chip in rows}
    best = max(shared.values(), default=0)
    return tuple(chip for chip in rows if shared[chip.name] == best)


def _same_size(gpu: Gpu, chip: Chip) -> bool:
    same_capability = gpu.compute_capability in ("", chip.compute_capability)
    return same_capability and abs(gpu.memory_bytes - chip.memory_bytes) <= SAME_MEMORY * chip.memory_bytes


def _ask(program: str, fields: tuple[str, ...]) -> NvidiaDriver:
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return NvidiaDriver(problem=f"{program} did not answer within {TIMEOUT_S:g} s")
    except OSError as error:
        return NvidiaDriver(problem=f"{program} cannot be run: {error.strerror}")
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        said = (done.stderr + done.stdout).strip().splitlines()
        return NvidiaDriver(problem=said[0] if said else f"{program} lists no GPU")
    return _driver([[cell.strip() for cell in line.split(",")] for line in lines], len(fields))


def _driver(rows: list[list[str]], columns: int) -> NvidiaDriver:
    whole = [row for row in rows if len(row) == columns]
    if not whole:
        return NvidiaDriver(problem=f"{PROGRAM} answered {', '.join(rows[0])}")
    return NvidiaDriver(whole[0][3], tuple(_gpu(row) for row in whole))


def _gpu(row: list[str]) -> Gpu:
    mebibytes = int(row[2]) if row[2].isdigit() else 0  # chips that share the host's memory answer [N/A]
    return Gpu(int(row[0]) if row[0].isdigit() else 0, row[1], mebibytes << 20, row[4] if len(row) > 4 else "")
