"""Chips as data: every row is whole, plausible and sourced."""

import pytest

from builder.errors import RefusedError
from builder.hardware.chips import Chip, chips, find_chip

GPUS = [chip for chip in chips().values() if chip.family != "cpu"]
AICONFIGURATOR = ["h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300", "rtx_pro_6000_server", "l40s", "a100_sxm"]


@pytest.mark.parametrize("chip", GPUS, ids=lambda chip: chip.name)
def test_row_is_whole(chip: Chip) -> None:
    assert chip.sources
    assert all(chip.sources)
    assert chip.certainty in {"published", "measured", "inferred"}
    assert 20 * 2**30 < chip.memory_bytes < 300 * 2**30
    assert 2e11 < chip.bandwidth_bytes_per_s < 1e13
    assert 3e10 <= chip.link_bytes_per_s <= 9e11


@pytest.mark.parametrize("chip", GPUS, ids=lambda chip: chip.name)
def test_number_formats_follow_the_compute_capability(chip: Chip) -> None:
    assert {"bf16", "int8"} <= set(chip.peak_ops_per_s)
    assert ("fp8" in chip.peak_ops_per_s) == (chip.sm >= 89)
    assert ("fp4" in chip.peak_ops_per_s) == (chip.sm >= 100)


@pytest.mark.parametrize("chip", GPUS, ids=lambda chip: chip.name)
def test_rates_are_dense(chip: Chip) -> None:
    """Sparse rates are twice the dense ones; half the width doubles a dense rate, four times with NVFP4's own units."""
    rates = chip.peak_ops_per_s
    assert rates.get("fp8", 2 * rates["bf16"]) / rates["bf16"] == pytest.approx(2, rel=0.02)
    assert 1.9 < rates.get("fp4", 2 * rates.get("fp8", 1)) / rates.get("fp8", 1) < 4.1


@pytest.mark.parametrize("name", AICONFIGURATOR)
def test_names_are_those_of_aiconfigurator(name: str) -> None:
    assert find_chip(name).name == name


def test_memory_is_what_the_driver_shows() -> None:
    """An H200 shows 143771 MiB; 141 GiB, which some tables use, is above it."""
    assert find_chip("h200_sxm").memory_bytes == 143771 * 2**20 < 141e9 * 1.075


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("H100", "write h100_pcie, h100_nvl or h100_sxm"),
        ("h100", "write h100_pcie, h100_nvl or h100_sxm"),
        ("A100", "write a100_pcie, a100_sxm or a100_sxm_40gb"),
        ("A100-80GB", "write a100_pcie or a100_sxm"),
        ("A100 40GB", "write a100_sxm_40gb"),
        ("A100-SXM4-40GB", "write a100_sxm_40gb"),
        ("H100-SXM5-80GB", "write h100_sxm"),
        ("NVIDIA H100 PCIe", "write h100_pcie"),
        ("h100sxm5", "write h100_sxm"),
        ("H200", "write h200_nvl or h200_sxm"),
        ("GH200-480GB", "write gh200"),
        ("L40S", "write l40s"),
        ("L40", "write l40"),
        ("b200-sxm", "write b200_sxm"),
        ("GeForce RTX 4090", "write rtx_4090"),
        ("4090", "write rtx_4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "write rtx_pro_6000_server"),
        ("cpuu", "write cpu"),
    ],
)
def test_names_as_people_write_them(written: str, fix: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip(written)
    assert (refusal.value.finding.code, refusal.value.finding.fix) == ("CHIP-UNKNOWN", fix)


def test_several_chips_that_fit_are_all_named() -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip("h200")
    assert refusal.value.finding.message == "no chip is called h200; did you mean h200_nvl or h200_sxm?"


@pytest.mark.parametrize("written", ["V100", "T4", "A16", "H20", "h1000", "zzzz", "", " "])
def test_another_model_is_never_proposed_for_being_spelt_alike(written: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip(written)
    assert refusal.value.finding.fix == "take one of the known chips, or add a row to configs/chips.yaml"
