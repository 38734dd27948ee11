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


def test_unknown_chip_names_the_nearest() -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip("h200")
    assert str(refusal.value.findings[0].message) == "no chip is called h200; did you mean h200_nvl or h200_sxm?"
    assert refusal.value.findings[0].code == "CHIP-UNKNOWN"


def test_misspelt_chip_names_the_most_similar() -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip("b200-sxm")
    assert refusal.value.finding.fix == "write b200_sxm"


def test_unknown_chip_without_a_near_name() -> None:
    with pytest.raises(RefusedError) as refusal:
        find_chip("zzzz")
    assert refusal.value.findings[0].fix == "take one of the known chips, or add a row to configs/chips.yaml"
