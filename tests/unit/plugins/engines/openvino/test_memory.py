"""What a build takes at its peak, against what the builds of the demo pair took (`tandem build` says so)."""

from pathlib import Path

import pytest

from builder.api import EngineRequest, ModelShape, Role
from plugins.engines.openvino import ENGINE


@pytest.mark.parametrize(
    ("role", "parameters", "layers", "measured_bytes"), [("target", 134_515_008, 30, 1.8e9), ("draft", 42_472_512, 4, 0.9e9)]
)
def test_a_build_takes_what_the_demo_took(role: Role, parameters: int, layers: int, measured_bytes: float) -> None:
    request = EngineRequest(role, Path(), "int8", "int8", 32, 16, 2047, 2048, 1024, 5 if role == "target" else 0)
    needs = ENGINE.build_needs(request, ModelShape(parameters, layers, 3, 64))
    assert needs.host_memory_bytes == pytest.approx(measured_bytes, rel=0.05)
