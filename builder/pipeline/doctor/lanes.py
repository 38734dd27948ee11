"""What each engine plug-in says of this machine: it is asked through the plug-in api, as the plan asks it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from builder import registry
from builder.api import BuildNeeds, Chip, Deployment, Engine, EngineRequest, ModelFacts, ModelShape, TandemError
from builder.hardware.chips import chips
from builder.hardware.host import gib
from builder.hardware.nvidia_smi import Gpu, chips_of
from builder.packaging.models import ENGINE_BACKEND
from builder.pipeline.doctor.check import Check
from builder.pipeline.doctor.extras import OWN, install_command
from builder.serving.installation import Installation
from builder.spec.model import LimitsSpec, SpeculationSpec

# Sizes of Llama-3.2-1B: the smallest model that people serve. A lane that cannot build it here builds nothing of use.
EXAMPLE = ModelShape(
    parameters=1_235_814_400,
    layers=16,
    kv_heads=8,
    head_dim=64,
    heads=32,
    hidden_size=2048,
    intermediate_size=8192,
    vocab_size=128_256,
    max_positions=131_072,
    embedding_parameters=262_668_288,
    active_parameters=1_235_814_400,
    tied_head=True,
)
PLUG_IN, LANE = "plug-in", "lane"
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


@dataclass(frozen=True)
class Room:
    """What a build finds here: GPUs, the host's memory (0 is unknown), free disk, and the server if there is one."""

    gpus: tuple[Gpu, ...]
    memory_bytes: int
    disk_bytes: int
    installation: Installation | None


@dataclass(frozen=True)
class Lane:
    """One engine plug-in on this machine. `builds` and `serves` count the machine's own checks, too; planning takes the plug-in alone."""

    name: str
    plans: bool
    builds: bool
    serves: bool
    checks: tuple[Check, ...]

    def as_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "checks": [check.as_dict() for check in self.checks]}


def read_lane(name: str, load: Callable[[str], Engine], room: Room, common: Sequence[Check]) -> Lane:
    """Judge one lane; `common` are the checks of the machine and the server. A plug-in that fails is a lane that is not ready."""
    checks = tuple(_checks(name, load, room))
    missing = {check.step for check in (*common, *checks) if not check.present}
    plans = all(check.present for check in checks if check.name == PLUG_IN)
    return Lane(name, plans, "build" not in missing, not missing & {"build", "serve"}, checks)


def _checks(name: str, load: Callable[[str], Engine], room: Room) -> Iterator[Check]:
    try:
        engine = load(name)
        chip, found = chip_checks(engine, room.gpus)
        if own := [check for check in found if check.name == LANE]:
            yield from own  # what the lane would need besides is of no use before a release builds it
            return
        yield packages_check(engine, name)
        yield from found
        if chip is not None:
            yield room_check(engine, chip, room)
        yield backend_check(engine, room.installation)
    except TandemError as error:
        yield Check(PLUG_IN, "build", False, str(error), error.finding.fix)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises, the others are still shown
        yield Check(PLUG_IN, "build", False, f"{type(error).__name__}: {error}", "report it to the plug-in's makers")


def packages_check(engine: Engine, name: str) -> Check:
    """Packages that building needs."""
    missing = list(engine.missing_packages())
    if not missing:
        return Check("packages", "build", True, "every package")
    fix = install_command(_distribution(name), name, missing)
    return Check("packages", "build", False, f"no {', '.join(missing)}", fix)


def _distribution(name: str) -> str:
    found = next(iter(entry_points(group=registry.ENGINES, name=name)), None)
    return found.dist.name if found is not None and found.dist is not None else OWN


def chip_checks(engine: Engine, gpus: Sequence[Gpu]) -> tuple[Chip | None, list[Check]]:
    """The chip here that the lane runs on, a GPU before the processor; where there is none, the refusal is the lane's own.

    What a lane finds of `engine.kind` in a pair of defaults is about itself: that this release plans it and does not build it.
    """
    refusals: list[str] = []
    own: list[Check] = []
    for chip, count in _chips_here(gpus):
        findings = engine.check_deployment(_deployment(chip, count))
        own = [Check(LANE, "build", False, f.message, f.fix) for f in findings if f.field == "engine.kind"]
        errors = [f for f in findings if f.severity == "error" and f.field.startswith("hardware")]
        if not errors:
            return chip, [*own, Check("chip", "build", True, chip.name)]
        refusals += [f"{chip.name}: {finding.message}" for finding in errors]
    fix = "plan it here, and build it on a machine with a chip that this lane runs on"
    return None, [*own, Check("chip", "build", False, refusals[0], fix)]


def _chips_here(gpus: Sequence[Gpu]) -> Iterator[tuple[Chip, int]]:
    """GPUs first, as rows of the chip table, with how many there are of each; then the processor."""
    rows = {chip.name: chip for gpu in gpus for chip in chips_of(gpu)}
    counts = {name: sum(name in gpu.chip_names for gpu in gpus) for name in rows}
    yield from ((chip, counts[name]) for name, chip in rows.items())
    yield from ((chip, 1) for chip in chips().values() if not chip.compute_capability)


def _deployment(chip: Chip, count: int) -> Deployment:
    """The example alone, with the defaults of a pair file."""
    draft_tokens = SpeculationSpec().max_draft_tokens
    facts = ModelFacts(Path(), CONFIG, EXAMPLE)
    return Deployment(
        chip=chip,
        chip_count=count,
        target=_request(chip.name),
        target_facts=facts,
        draft=None,
        draft_facts=None,
        method="none",
        acceptance="tokens",
        max_draft_tokens=draft_tokens,
        reuse=True,
        host_offload_bytes=0,
        topology="orchestrated",
    )


def _request(chip: str) -> EngineRequest:
    limits = LimitsSpec()
    return EngineRequest(
        role="target",
        checkpoint=Path(),
        weights="none",
        kv_cache="auto",
        tokens_per_block=32,
        max_batch_size=limits.max_batch_size,
        max_input_tokens=limits.max_input_tokens,
        max_sequence_tokens=limits.max_sequence_tokens,
        max_batched_tokens=limits.max_batched_tokens,
        max_draft_tokens=0,
        chip=chip,
    )


def room_check(engine: Engine, chip: Chip, room: Room) -> Check:
    """What building the example takes, against what is here."""
    needs = engine.build_needs(_request(chip.name), EXAMPLE)
    lacks = [f"{what}: {gib(needed)} needed, {gib(here)} here" for what, needed, here in _compared(needs, room) if here < needed]
    if lacks:
        return Check("room to build", "build", False, "; ".join(lacks), "free some, or build on a larger machine")
    return Check("room to build", "build", True, f"a model of 1.2 B parameters takes {gib(needs.host_memory_bytes)} of host memory")


def _compared(needs: BuildNeeds, room: Room) -> Iterator[tuple[str, int, int]]:
    yield "host memory", needs.host_memory_bytes, room.memory_bytes or needs.host_memory_bytes
    yield "disk", needs.disk_bytes, room.disk_bytes
    yield "GPU memory", needs.device_memory_bytes, max((gpu.memory_bytes for gpu in room.gpus), default=0)


def backend_check(engine: Engine, installation: Installation | None) -> Check:
    """The backend that runs the lane's engines: the plug-in's own, or one that the server must have."""
    if ENGINE_BACKEND in engine.server_needs().backends:
        return Check("Triton backend", "serve", True, "comes with the plug-in")
    folder = installation.own_backends / ENGINE_BACKEND if installation else None
    if folder is not None and folder.is_dir():
        return Check("Triton backend", "serve", True, str(folder))
    fix = f"work inside a tritonserver container that has the backend {ENGINE_BACKEND}"
    return Check("Triton backend", "serve", False, f"no {folder}" if folder else "no Triton server", fix)
