"""A lane is judged by what its plug-in answers, and a plug-in that fails takes none of the others with it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from builder.api import BuildNeeds, Deployment, Engine, Finding, MissingError, ServerNeeds
from builder.hardware.nvidia_smi import Gpu
from builder.pipeline.doctor.check import Check
from builder.pipeline.doctor.lanes import Lane, Room, read_lane
from builder.serving.installation import Installation

GIB = 2**30
L4 = Gpu(0, "NVIDIA L4", 23034 << 20, "8.9")
H100 = Gpu(1, "NVIDIA H100 PCIe", 81559 << 20, "9.0")
UNKNOWN = Gpu(2, "NVIDIA X", 5 << 30, "7.5")
SMALL = BuildNeeds(5 * GIB, 2 * GIB)


@dataclass
class Plugin:
    """An engine plug-in whose answers are its fields; `families` are those it runs on."""

    families: tuple[str, ...] = ("cpu",)
    missing: tuple[str, ...] = ()
    needs: BuildNeeds = SMALL
    backends: dict[str, Path] = field(default_factory=lambda: {"tensorrtllm": Path("backend")})
    plan_only: str = ""
    asked: list[tuple[str, int]] = field(default_factory=list)

    def missing_packages(self) -> tuple[str, ...]:
        return self.missing

    def check_deployment(self, deployment: Deployment) -> list[Finding]:
        self.asked.append((deployment.chip.name, deployment.chip_count))
        others = [Finding("RULE-X", "error", "Not about the chip.", "engine.release")]
        if self.plan_only:
            others.append(Finding("LANE-X", "info", self.plan_only, "engine.kind"))
        if deployment.chip.family in self.families:
            return others
        return [*others, Finding("RULE-CHIP", "error", f"It runs on {' and '.join(self.families)} alone.", "hardware.chip")]

    def build_needs(self, *_: Any) -> BuildNeeds:
        return self.needs

    def server_needs(self) -> ServerNeeds:
        return ServerNeeds(backends=self.backends)


def judge(plugin: object, *gpus: Gpu, common: tuple[Check, ...] = (), **room: Any) -> Lane:
    values = {"memory_bytes": 16 * GIB, "disk_bytes": 50 * GIB, "installation": None} | room
    return read_lane("thing", lambda _name: cast("Engine", plugin), Room(gpus, **values), common)


def missing(lane: Lane) -> dict[str, str]:
    return {check.name: check.found for check in lane.checks if not check.present}


def test_a_lane_that_is_ready() -> None:
    lane = judge(Plugin())
    assert (lane.plans, lane.builds, lane.serves, missing(lane)) == (True, True, True, {})
    assert lane.as_dict()["checks"][0]["name"] == "packages"


def test_packages() -> None:
    lane = judge(Plugin(missing=("one", "two")))
    assert (lane.plans, lane.builds, missing(lane)) == (True, False, {"packages": "no one, two"})
    assert lane.checks[0].fix == "pip install one two"


def test_a_lane_for_gpus_on_a_processor() -> None:
    lane = judge(Plugin(families=("ada",), needs=BuildNeeds(GIB, GIB, GIB)))
    assert (lane.builds, missing(lane)) == (False, {"chip": "cpu: It runs on ada alone."})


def test_a_gpu_before_the_processor() -> None:
    plugin = Plugin(families=("hopper", "cpu"))
    lane = judge(plugin, L4, UNKNOWN, H100)
    assert plugin.asked == [("l4", 1), ("h100_pcie", 1)]
    assert {check.name: check.found for check in lane.checks}["chip"] == "h100_pcie"


def test_a_gpu_that_the_lane_refuses_is_named() -> None:
    assert missing(judge(Plugin(families=("hopper",)), L4))["chip"] == "l4: It runs on hopper alone."


@pytest.mark.parametrize("families", [("cpu",), ("ada",)])
def test_a_lane_that_this_release_only_plans(families: tuple[str, ...]) -> None:
    lane = judge(Plugin(families=families, plan_only="This release plans the lane and does not build it."))
    assert (lane.plans, lane.builds) == (True, False)
    assert missing(lane) == {"lane": "This release plans the lane and does not build it."}


def test_equal_gpus_are_counted() -> None:
    plugin = Plugin(families=("ada",))
    judge(plugin, L4, L4)
    assert plugin.asked == [("l4", 2)]


@pytest.mark.parametrize(
    ("room", "needs", "found"),
    [
        ({"memory_bytes": 4 * GIB}, BuildNeeds(5 * GIB, GIB), "host memory: 5.0 GiB needed, 4.0 GiB here"),
        ({"disk_bytes": GIB}, BuildNeeds(GIB, 2 * GIB), "disk: 2.0 GiB needed, 1.0 GiB here"),
        ({}, BuildNeeds(GIB, GIB, 30 * GIB), "GPU memory: 30.0 GiB needed, 22.5 GiB here"),
    ],
    ids=["host", "disk", "device"],
)
def test_room_to_build(room: dict[str, int], needs: BuildNeeds, found: str) -> None:
    assert missing(judge(Plugin(families=("ada",), needs=needs), L4, **room)) == {"room to build": found}


def test_memory_that_is_unknown_refuses_nothing() -> None:
    assert judge(Plugin(), memory_bytes=0).builds


def test_a_backend_that_the_server_must_have(tmp_path: Path) -> None:
    server = Installation(tmp_path / "bin", tmp_path, (), (), from_wheel=False)
    plugin = Plugin(backends={})
    assert missing(judge(plugin)) == {"Triton backend": "no Triton server"}
    assert missing(judge(plugin, installation=server)) == {"Triton backend": f"no {tmp_path / 'tensorrtllm'}"}
    (tmp_path / "tensorrtllm").mkdir()
    lane = judge(plugin, installation=server)
    assert (lane.builds, lane.serves) == (True, True)


def test_what_the_machine_lacks_counts_for_every_lane() -> None:
    server = Check("Triton server", "serve", False, "none")
    python = Check("Python", "build", False, "3.9")
    driver = Check("NVIDIA driver", "info", False, "none")
    assert (judge(Plugin(), common=(driver,)).serves, judge(Plugin(), common=(server,)).builds) == (True, True)
    assert not judge(Plugin(), common=(server,)).serves
    assert not judge(Plugin(), common=(python,)).builds


@pytest.mark.parametrize(
    ("error", "found"),
    [(MissingError("PLUGIN-BROKEN", "cannot be imported", fix="reinstall it"), "cannot be imported"), (KeyError("x"), "KeyError: 'x'")],
    ids=["a known error", "a bug"],
)
def test_a_plugin_that_fails(error: Exception, found: str) -> None:
    def load(_name: str) -> Engine:
        raise error

    lane = read_lane("thing", load, Room((), 0, 0, None), ())
    assert (lane.plans, lane.builds, lane.serves, missing(lane)) == (False, False, False, {"plug-in": found})


def test_a_plugin_that_fails_later() -> None:
    lane = judge(object())
    assert "AttributeError" in missing(lane)["plug-in"]
