"""The user's own measurements: what the file may say, and times between its entries."""

import json
from pathlib import Path

import pytest

from builder.errors import RefusedError
from builder.planner.speed.measured import LowBatchStepTime, MeasuredStepTime
from builder.planner.speed.measured_file import StepTable, read_measured
from tests.unit.builder.planner.speed.conftest import LinearStepTime

SHAPE = LinearStepTime(0.010, 1e-4, 1e-6)
TABLE = StepTable.model_validate(
    {
        "decode": [
            {"batch": 1, "context_tokens": 1000, "seconds": 0.020},
            {"batch": 1, "context_tokens": 3000, "seconds": 0.030},
            {"batch": 16, "context_tokens": 1000, "seconds": 0.040},
            {"batch": 4, "query_tokens": 5, "context_tokens": 1000, "seconds": 0.050},
        ],
        "prefill": [{"batch": 1, "tokens": 1000, "seconds": 0.3}],
    }
)
RUN = {"draft_tokens": 2, "tokens_per_s": 50, "acceptance_length": 2.2, "plain_tokens_per_s": 30}


def written(folder: Path, content: object) -> Path:
    file = folder / "measured.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_entries_are_met_exactly() -> None:
    steps = MeasuredStepTime(TABLE, SHAPE)
    for row in TABLE.decode:
        assert steps.decode_s(row.batch, row.context_tokens, row.query_tokens) == pytest.approx(row.seconds)
    assert steps.prefill_s(1, 1000) == pytest.approx(0.3)
    assert steps.provider == "measured"


def test_between_entries_the_factor_is_interpolated() -> None:
    steps = MeasuredStepTime(TABLE, SHAPE)
    factors = [0.020 / SHAPE.decode_s(1, 1000), 0.030 / SHAPE.decode_s(1, 3000)]
    assert steps.decode_s(1, 2000) == pytest.approx(SHAPE.decode_s(1, 2000) * sum(factors) / 2)


def test_beyond_entries_the_nearest_factor_holds() -> None:
    steps = MeasuredStepTime(TABLE, SHAPE)
    assert steps.decode_s(1, 9000) == pytest.approx(SHAPE.decode_s(1, 9000) * 0.030 / SHAPE.decode_s(1, 3000))
    assert steps.decode_s(64, 1000) == pytest.approx(SHAPE.decode_s(64, 1000) * 0.040 / SHAPE.decode_s(16, 1000))


def test_prompts_without_entries_take_the_shape() -> None:
    table = TABLE.model_copy(update={"prefill": ()})
    assert MeasuredStepTime(table, SHAPE).prefill_s(2, 500) == SHAPE.prefill_s(2, 500)


@pytest.mark.parametrize(("batch", "factor"), [(1, 0.85), (4, 0.85), (8, 0.925), (16, 1.0), (64, 1.0)])
def test_low_batches_are_corrected_and_large_ones_are_not(batch: int, factor: float) -> None:
    steps = LowBatchStepTime(SHAPE, 0.85, full_to_batch=4, none_from_batch=16)
    assert steps.decode_s(batch, 100, 3) == pytest.approx(factor * SHAPE.decode_s(batch, 100, 3))
    assert steps.prefill_s(batch, 100) == SHAPE.prefill_s(batch, 100)


def test_whole_file_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, {"format": 1, "target": TABLE.model_dump(), "calibration": [RUN, RUN | {"draft_tokens": 5}]})
    measured = read_measured(file)
    assert measured.target == TABLE
    assert measured.draft is None
    assert measured.calibration[1].batch == 1


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"The measurements nowhere.json cannot be read.") as caught:
        read_measured(tmp_path / "nowhere.json")
    assert caught.value.finding.code == "SPEED-MEASURED-MISSING"
    assert caught.value.finding.field == "planning.measured"


REFUSED = [
    ("{", "The measurements measured.json are not JSON: Expecting property name enclosed in double quotes at line 1."),
    ({"format": 2}, "The measurements measured.json are wrong at format: Input should be 1."),
    ({"format": 1, "speed": 3}, "The measurements measured.json are wrong at speed: Extra inputs are not permitted."),
    (
        {"format": 1, "target": {"decode": [{"batch": 0, "context_tokens": 10, "seconds": 1}]}},
        "The measurements measured.json are wrong at target.decode.0.batch: Input should be greater than or equal to 1.",
    ),
    (
        {"format": 1, "calibration": [RUN, RUN]},
        "The measurements measured.json are wrong at the file: calibration needs two runs that differ in draft_tokens: "
        "the overheads of a step and of a cycle are two unknowns.",
    ),
    (
        {"format": 1, "calibration": [RUN | {"acceptance_length": 3.5}]},
        "The measurements measured.json are wrong at calibration.0: "
        "acceptance_length 3.5 is more than 2 drafts and the target's own token can yield.",
    ),
]


@pytest.mark.parametrize(("content", "message"), REFUSED)
def test_wrong_file_is_refused_with_place_and_reason(tmp_path: Path, content: object, message: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_measured(written(tmp_path, content))
    assert caught.value.finding.message == message
    assert caught.value.finding.code == "SPEED-MEASURED-INVALID"


def test_everything_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(RefusedError) as caught:
        read_measured(written(tmp_path, {"format": 3, "more": 1}))
    assert len(caught.value.findings) == 2


def test_example_of_the_documentation_is_accepted(tmp_path: Path) -> None:
    page = (Path(__file__).parents[5] / "docs" / "planning.md").read_text()
    example = page.split("```json\n")[1].split("```")[0]
    measured = read_measured(written(tmp_path, example))
    assert measured.target is not None
    assert len(measured.calibration) == 2


def test_a_batch_and_as_many_query_tokens_are_told_apart() -> None:
    rows = [
        {"batch": 8, "query_tokens": 1, "context_tokens": 1000, "seconds": 0.010},
        {"batch": 1, "query_tokens": 8, "context_tokens": 1000, "seconds": 0.020},
    ]
    steps = MeasuredStepTime(StepTable.model_validate({"decode": rows}), SHAPE)
    assert steps.decode_s(8, 1000, 1) == pytest.approx(0.010)
    assert steps.decode_s(1, 1000, 8) == pytest.approx(0.020)


HUGE = {"decode": [{"batch": 1, "context_tokens": 1000, "seconds": 0.02}]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 100_000, "The measurements measured.json are not JSON: it is nested too deeply."),
        ('{"format": ' + "9" * 5000 + "}", "The measurements measured.json are not JSON: it has a number of too many digits."),
        ({"format": 1, "target": {"decode": [{**HUGE["decode"][0], "seconds": float("inf")}]}}, "decode.0.seconds: "),
        ({"format": 1, "target": {"decode": [{**HUGE["decode"][0], "seconds": 1e300}]}}, "decode.0.seconds: "),
        ({"format": 1, "target": {"decode": [{**HUGE["decode"][0], "batch": 10**400}]}}, "decode.0.batch: "),
        ({"format": 1, "calibration": [{**RUN, "draft_tokens": 10**30}, RUN]}, "calibration.0.draft_tokens: "),
        (
            {"format": 1, "calibration": [{**RUN, "draft_tokens": 5, "tokens_per_s": 80}, RUN]},
            "calibration.0: 80 tokens/s are more than 2.2 times the 30 tokens/s without drafts, though no cycle yields more",
        ),
    ],
)
def test_absurd_content_is_refused_in_words(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_measured(written(tmp_path, content))
    assert {finding.code for finding in caught.value.findings} == {"SPEED-MEASURED-INVALID"}
    assert said in caught.value.findings[0].message
