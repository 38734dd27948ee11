"""What nvidia-smi says becomes GPUs and rows of the chip table; what it cannot say becomes a problem."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builder.hardware import nvidia_smi
from builder.hardware.nvidia_smi import Gpu, read_driver

MIB = 1 << 20


def test_gpus_are_listed_with_the_words_of_a_pair_file(fake_driver: Callable[[str], Path]) -> None:
    fake_driver('printf "0, NVIDIA H200, 143771, 570.124, 9.0\\n1, NVIDIA L40S, 46068, 570.124, 8.9\\n"')
    driver = read_driver()
    assert (driver.version, driver.problem) == ("570.124", "")
    assert driver.gpus == (Gpu(0, "NVIDIA H200", 143771 * MIB, "9.0"), Gpu(1, "NVIDIA L40S", 46068 * MIB, "8.9"))
    assert driver.gpus[1].chip_names == ("l40s",)


def test_the_query_names_its_fields(fake_driver: Callable[[str], Path], tmp_path: Path) -> None:
    fake_driver(f'echo "$*" >{tmp_path}/asked; echo "0, NVIDIA L4, 23034, 570.1, 8.9"')
    assert read_driver().gpus
    asked = "--query-gpu=index,name,memory.total,driver_version,compute_cap --format=csv,noheader,nounits\n"
    assert (tmp_path / "asked").read_text() == asked


@pytest.mark.parametrize(
    ("gpu", "names"),
    [
        (Gpu(0, "NVIDIA H100 PCIe", 81559 * MIB, "9.0"), ("h100_pcie",)),
        (Gpu(0, "NVIDIA H100 80GB HBM3", 81559 * MIB, "9.0"), ("h100_pcie", "h100_sxm")),
        (Gpu(0, "NVIDIA A100-SXM4-40GB", 40960 * MIB, "8.0"), ("a100_sxm_40gb",)),
        (Gpu(0, "NVIDIA H100 80GB HBM3 MIG", 40 * 1024 * MIB, "9.0"), ()),
        (Gpu(0, "NVIDIA GB10", 0, "12.1"), ()),
    ],
    ids=["one", "two that differ in links", "by memory", "no such size", "shares the host's memory"],
)
def test_rows_of_the_chip_table(gpu: Gpu, names: tuple[str, ...]) -> None:
    assert gpu.chip_names == names


def test_a_driver_without_compute_capability_is_asked_again(fake_driver: Callable[[str], Path]) -> None:
    old = 'case "$1" in *compute_cap*) echo \'Field "compute_cap" is not a valid field to query.\'; exit 2;; esac'
    fake_driver(f'{old}\necho "0, NVIDIA L4, 23034, 470.82"')
    driver = read_driver()
    assert driver.gpus == (Gpu(0, "NVIDIA L4", 23034 * MIB, ""),)
    assert driver.gpus[0].chip_names == ("l4",)


def test_memory_that_is_not_said(fake_driver: Callable[[str], Path]) -> None:
    fake_driver('echo "0, NVIDIA GB10, [N/A], 580.1, 12.1"')
    assert read_driver().gpus[0].memory_bytes == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'; exit 9", "NVIDIA-SMI has failed because"),
        ("exit 0", "lists no GPU"),
        ("echo 'No devices were found'", "nvidia-smi answered No devices were found"),
        ("sleep 20", "did not answer within"),
    ],
    ids=["broken", "silent", "other text", "hangs"],
)
def test_problems(fake_driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, body: str, problem: str) -> None:
    fake_driver(body)
    monkeypatch.setattr(nvidia_smi, "TIMEOUT_S", 2.0)
    driver = read_driver()
    assert problem in driver.problem
    assert not driver.gpus


def test_a_program_that_cannot_be_run(fake_driver: Callable[[str], Path]) -> None:
    fake_driver("").write_text("#!/no/such/shell\n")
    assert "cannot be run" in read_driver().problem


def test_no_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_driver().problem == "no nvidia-smi"
