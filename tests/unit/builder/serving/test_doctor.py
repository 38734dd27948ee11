"""The doctor names what is there and how to mend what is not."""

from pathlib import Path

from builder.errors import MissingError
from builder.serving import doctor


def test_every_check_has_a_finding_and_a_way_out() -> None:
    found = doctor.checks()
    assert {"Python", "engine openvino", "Triton server", "shared libpython", "gRPC client", "shared memory"} <= {c.name for c in found}
    assert all(c.found and c.fix for c in found)
    assert not next(c for c in found if c.name == "NVIDIA driver").needed


def test_an_error_is_a_finding_with_its_own_fix() -> None:
    def missing() -> str:
        raise MissingError("X", "no server here", fix="install one")

    check = doctor._asked("server", missing)
    assert (check.present, check.found, check.fix) == (False, "no server here", "install one")


def test_missing_modules_are_named() -> None:
    check = doctor._modules("things", ("json", "no_such_module_here"))
    assert (check.present, check.found) == (False, "no no_such_module_here")


def test_shared_memory_that_is_not_there(tmp_path: Path) -> None:
    assert not doctor._shared_memory(tmp_path / "none").present
