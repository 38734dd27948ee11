"""The whole examination: machine, server, lanes, extras."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder import registry
from builder.hardware.host import HostMemory, free_disk_bytes
from builder.hardware.nvidia_smi import NvidiaDriver, read_driver
from builder.pipeline.doctor.check import Check
from builder.pipeline.doctor.extras import Extra, read_extras
from builder.pipeline.doctor.lanes import Lane, Room, read_lane
from builder.pipeline.doctor.machine import machine_checks, read_memory
from builder.pipeline.doctor.server import read_server
from builder.spec.model import EngineSpec

SCHEMA = 2


@dataclass(frozen=True)
class Examination:
    """All that was found. `judged` is the lane that decides the exit code: the named one, else the default of a pair file."""

    driver: NvidiaDriver
    memory: HostMemory
    machine: tuple[Check, ...]
    server: tuple[Check, ...]
    lanes: tuple[Lane, ...]
    extras: tuple[Extra, ...]
    judged: Lane

    def as_dict(self) -> dict[str, Any]:
        """The object that `tandem doctor --json` prints."""
        return {
            "schema": SCHEMA,
            "ok": self.judged.builds,
            "lane": self.judged.name,
            "driver": self.driver.version,
            "gpus": [gpu.as_dict() for gpu in self.driver.gpus],
            "host_memory": dict(self.memory.__dict__),
            "machine": [check.as_dict() for check in self.machine],
            "server": [check.as_dict() for check in self.server],
            "lanes": [lane.as_dict() for lane in self.lanes],
            "extras": [extra.as_dict() for extra in self.extras],
        }


def examine(build_root: Path, lane: str | None = None, *, network: bool = False) -> Examination:
    """Look at everything. Raises RefusedError PLUGIN-UNKNOWN for a lane that no plug-in has."""
    known = registry.names(registry.ENGINES)
    if lane is not None and lane not in known:
        registry.engine(lane)
    driver, memory, server = read_driver(), read_memory(), read_server()
    machine = tuple(machine_checks(driver, memory, build_root, network=network))
    room = Room(driver.gpus, memory.total_bytes, _free(build_root), server.installation)
    lanes = {name: read_lane(name, registry.engine, room, (*machine, *server.checks)) for name in known}
    wanted = lane or str(EngineSpec().kind)
    judged = lanes.get(wanted) or read_lane(wanted, registry.engine, room, machine)
    return Examination(driver, memory, machine, server.checks, tuple(lanes.values()), read_extras(), judged)


def _free(build_root: Path) -> int:
    try:
        return free_disk_bytes(build_root)
    except OSError:
        return 0
