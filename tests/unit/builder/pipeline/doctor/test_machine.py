"""Checks of the machine: each has a case that passes and one that names its way out."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.hardware.host import HostMemory
from builder.hardware.nvidia_smi import Gpu, NvidiaDriver
from builder.pipeline.doctor import machine

L4 = Gpu(0, "NVIDIA L4", 23034 << 20, "8.9")
DRIVER = NvidiaDriver("570.1", (L4,))


@pytest.mark.parametrize(("version", "fits"), [((3, 10), False), ((3, 11), True), ((3, 12), True), ((3, 13), False)])
def test_python(version: tuple[int, int], fits: bool) -> None:
    check = machine.python_check(version)
    assert (check.present, bool(check.fix), check.step) == (fits, not fits, "build")


def test_packages_of_one_distribution() -> None:
    assert machine.own_packages_check(machine.OWN_PACKAGES).present


def test_a_package_that_another_distribution_hides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_plugins").mkdir()
    (tmp_path / "some_plugins" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    check = machine.own_packages_check(("builder", "some_plugins", "no_such_package"))
    assert (check.present, check.found) == (False, f"some_plugins from {tmp_path}, no_such_package from nowhere")
    assert check.fix == "install trt-tandem in an environment of its own"


def test_driver_that_is_absent_stops_nothing() -> None:
    check = machine.driver_check(NvidiaDriver(problem="no nvidia-smi"))
    assert (check.present, check.step, check.found) == (False, "info", "no nvidia-smi")
    assert machine.driver_check(DRIVER).found == "570.1, GPUs: 1"


def test_a_gpu_with_its_word_for_a_pair_file() -> None:
    check = machine.gpu_check(L4)
    assert check.found == "NVIDIA L4, 22.5 GiB, compute capability 8.9; hardware.chip: l4"


def test_a_gpu_that_the_table_has_not() -> None:
    check = machine.gpu_check(Gpu(1, "NVIDIA T400", 2 << 30, ""))
    assert (check.present, check.name) == (False, "GPU 1")
    assert check.found == "NVIDIA T400, 2.0 GiB, compute capability unknown; no row of configs/chips.yaml is like it"


@pytest.mark.parametrize(
    ("driver", "programs", "hook", "present", "found"),
    [
        (NvidiaDriver(), (), False, False, "no docker, podman, srun, enroot or apptainer"),
        (NvidiaDriver(), ("docker",), False, True, "docker"),
        (DRIVER, ("docker", "srun"), False, False, "docker, srun, but no NVIDIA container toolkit"),
        (DRIVER, ("docker",), True, True, "docker"),
        (DRIVER, ("srun",), False, True, "srun"),
    ],
    ids=["none", "no GPU", "no toolkit", "all", "srun brings its own"],
)
def test_containers(driver: NvidiaDriver, programs: tuple[str, ...], hook: bool, present: bool, found: str) -> None:
    check = machine.containers_check(driver, programs, gpu_hook=hook)
    assert (check.present, check.found, bool(check.fix)) == (present, found, not present)


def test_disk(tmp_path: Path) -> None:
    assert machine.disk_check(tmp_path / "build").present


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield server


def test_the_hub_is_tried_on_request_alone(hub: socket.socket) -> None:
    untried = machine.hub_check(network=False)
    assert (untried.present, untried.found.split(" ", 1)[1]) == (True, "was not tried; --network tries it")
    hub.setblocking(False)
    with pytest.raises(BlockingIOError):
        hub.accept()
    tried = machine.hub_check(network=True)
    assert (tried.present, tried.found.split(" ", 1)[1]) == (True, "answers")


def test_a_hub_that_does_not_answer(hub: socket.socket) -> None:
    hub.close()
    check = machine.hub_check(network=True)
    assert not check.present
    assert "cannot be reached: Connection refused" in check.found


def test_offline_by_choice(hub: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert machine.hub_check(network=True).found == "HF_HUB_OFFLINE is set"


def test_all_of_them(tmp_path: Path) -> None:
    names = [check.name for check in machine.machine_checks(DRIVER, HostMemory(0, 0), tmp_path, network=False)]
    assert names == ["Python", "packages of Tandem", "host memory", "disk", "NVIDIA driver", "GPU 0", "containers", "model hub"]
