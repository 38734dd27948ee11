"""The picture: a PNG of known size, every row labelled, the front drawn; and nothing of it where it is not asked for."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.errors import MissingError, RefusedError
from builder.planner.sweep import Evaluate, Sweep, run_sweep, write_plot
from builder.planner.sweep.plot import COLOURS, DPI, INCHES, draw
from builder.spec import Pair

AXES = ["kv=bf16,fp8,nvfp4", "k=2,5", "batch=1,8,32"]


@pytest.fixture
def result(make_pair: Callable[..., Pair], evaluate: Evaluate) -> Sweep:
    return run_sweep(make_pair(), AXES, evaluate)


def test_png_has_its_header_and_size(result: Sweep, tmp_path: Path) -> None:
    file = tmp_path / "a sweep.png"
    write_plot(result, file)
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (int(INCHES[0] * DPI), int(INCHES[1] * DPI))
    write_plot(result, tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == content, "the same sweep is the same file"


def test_every_row_that_works_is_labelled_in_both_panels(result: Sweep) -> None:
    working = {str(row.number) for row in result.rows if row.ok}
    assert 0 < len(working) < len(result.rows)
    for axes in draw(result).axes:
        assert {text.get_text() for text in axes.texts} == working
        bold = {text.get_text() for text in axes.texts if text.get_fontweight() == "bold"}
        assert bold == {str(number) for number in result.front}


def test_points_lie_at_capacity_and_speed(result: Sweep) -> None:
    left, right = draw(result).axes
    for axes, across in ((left, "capacity"), (right, "rate")):
        drawn = {(round(x, 6), round(y, 6)) for group in axes.collections for x, y in group.get_offsets().tolist()}
        for _, figures in result.figures:
            x = figures.capacity_tokens / 1000 if across == "capacity" else figures.tokens_per_s
            assert (round(x, 6), round(figures.tokens_per_s_per_user, 6)) in drawn
    assert (left.get_xlabel(), right.get_xlabel()) == ("KV cache, thousand tokens", "tokens/s in all")
    assert left.get_ylabel() == "tokens/s per user"


def test_front_is_a_line_that_no_point_is_beyond(result: Sweep) -> None:
    for axes in draw(result).axes:
        (line,) = axes.lines
        edge = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
        assert [x for x, _ in edge] == sorted(x for x, _ in edge)
        for group in axes.collections:
            for x, y in group.get_offsets().tolist():
                assert any(x <= right + 1e-9 and y <= top + 1e-9 for right, top in edge)


def test_front_rows_are_listed_with_the_one_to_take_first_and_refusals_counted(result: Sweep) -> None:
    figure = draw(result)
    listing, footer = (text.get_text() for text in figure.texts[-2:])
    lines = listing.splitlines()
    assert lines[1] == f"Take {result.recommended}: {result.rows[(result.recommended or 0) - 1].label}"
    assert len(lines) == 1 + len(result.front)
    assert footer == ("Step times: roofline (error band 30%). Requests of 1000 tokens in, 500 out. Not drawn: 6 refused (RULE-KV-NVFP4).")


def test_series_have_colours_for_any_colour_vision_and_a_light_ground(result: Sweep) -> None:
    figure = draw(result)
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["target.kv_cache bf16", "target.kv_cache fp8", "front: nothing is above it and to its right"]
    assert len(set(COLOURS)) == 7


def test_many_chips_are_compared_by_what_one_serves(make_pair: Callable[..., Pair], evaluate: Evaluate) -> None:
    figure = draw(run_sweep(make_pair(), ["count=1,2", "chip=h200_sxm,b200_sxm"], evaluate))
    assert figure.axes[1].get_xlabel() == "tokens/s of each chip"
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["hardware.chip h200_sxm", "hardware.chip b200_sxm"]


def test_nothing_to_draw_is_refused(make_pair: Callable[..., Pair], evaluate: Evaluate, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="nothing can be drawn: No row works: RULE-KV-NVFP4 refuses 1") as raised:
        write_plot(run_sweep(make_pair(), ["kv=nvfp4"], evaluate), tmp_path / "a.png")
    assert raised.value.finding.code == "SWEEP-PLOT-EMPTY"
    assert not (tmp_path / "a.png").exists()


def test_file_that_cannot_be_written_is_refused(result: Sweep, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="cannot be written") as raised:
        write_plot(result, tmp_path / "file" / "a.png")
    assert raised.value.finding.code == "SWEEP-PLOT-FILE"


@pytest.mark.parametrize("name", ["a.json", "a.pdf", "a", "a.png.txt"])
def test_only_pictures_are_written(result: Sweep, tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedError, match="is named as something else") as raised:
        write_plot(result, tmp_path / name)
    assert (raised.value.finding.code, raised.value.finding.fix) == (
        "SWEEP-PLOT-FILE",
        f"--plot {Path(name).with_suffix('.png')}",
    )
    assert not (tmp_path / name).exists()


def test_no_folder_is_made(result: Sweep, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="there is no folder") as raised:
        write_plot(result, tmp_path / "new" / "a.png")
    assert raised.value.finding.code == "SWEEP-PLOT-FILE"
    assert not (tmp_path / "new").exists()


def test_without_matplotlib_the_way_out_is_named(result: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingError, match="a plot needs the package matplotlib") as raised:
        write_plot(result, tmp_path / "a.png")
    assert raised.value.finding.fix == "pip install 'trt-tandem[plot]'"


def test_a_sweep_imports_neither_matplotlib_nor_numpy() -> None:
    script = "import builder.planner.sweep, builder.cli.sweep, sys; print([n for n in ('matplotlib', 'numpy', 'PIL') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
