"""Labels find places of their own."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from builder.planner.sweep.labels import HEIGHT_POINTS, POINTS_PER_CHARACTER, Box, place_labels

WINDOW = Box(0, 0, 800, 600)


def boxes(points: list[tuple[float, float]], offsets: list[tuple[float, float]], texts: list[str], scale: float = 1.0) -> list[Box]:
    result = []
    for (x, y), (dx, dy), text in zip(points, offsets, texts, strict=True):
        width, height = len(text) * POINTS_PER_CHARACTER * scale / 2, HEIGHT_POINTS * scale / 2
        centre_x, centre_y = x + dx * scale, y + dy * scale
        result.append(Box(centre_x - width, centre_y - height, centre_x + width, centre_y + height))
    return result


@given(st.lists(st.tuples(st.floats(100, 700), st.floats(100, 500)), min_size=1, max_size=8))
def test_labels_do_not_meet_and_stay_inside(points: list[tuple[float, float]]) -> None:
    """Also when all points are one."""
    texts = [str(i + 1) for i in range(len(points))]
    placed = boxes(points, place_labels(points, texts, WINDOW, 1.0), texts)
    assert not any(a.meets(b) for a, b in combinations(placed, 2))
    assert all(WINDOW.holds(box) for box in placed)


def test_a_point_alone_has_its_label_close_and_inside() -> None:
    ((dx, dy),) = place_labels([(0.0, 0.0)], ["7"], WINDOW, 2.0)
    assert dx > 0
    assert dy > 0
    assert abs(dx) + abs(dy) < 22


def test_without_room_the_closest_place_is_taken() -> None:
    tiny = Box(0, 0, 1, 1)
    offsets = place_labels([(0.5, 0.5)] * 3, ["1", "2", "3"], tiny, 1.0)
    assert len(set(offsets)) == 1
