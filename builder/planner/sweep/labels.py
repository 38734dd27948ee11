"""Where labels of points go so that they do not cover each other."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

POINTS_PER_CHARACTER, HEIGHT_POINTS, MARKER_POINTS = 6.2, 9.5, 7.0
RADII_POINTS = (9.0, 15.0, 22.0, 30.0, 40.0, 52.0)
DIRECTIONS = 12

Place = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def meets(self, other: "Box") -> bool:
        return self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top

    def holds(self, other: "Box") -> bool:
        return self.left <= other.left and self.bottom <= other.bottom and other.right <= self.right and other.top <= self.top


def place_labels(points: Sequence[Place], texts: Sequence[str], window: Box, scale: float) -> list[Place]:
    """Offset in points (1/72 inch) of each label's centre from its point; `points` and `window` are pixels, `scale` pixels a point.

    The first free place of growing circles is taken, free of markers and of labels placed before; the closest one when none is free.
    """
    taken = [_around(point, MARKER_POINTS * scale, MARKER_POINTS * scale) for point in points]
    offsets: list[Place] = []
    for point, text in zip(points, texts, strict=True):
        width, height = len(text) * POINTS_PER_CHARACTER * scale, HEIGHT_POINTS * scale
        tries = [(offset, _around((point[0] + offset[0] * scale, point[1] + offset[1] * scale), width, height)) for offset in _circles()]
        free = (place for place in tries if window.holds(place[1]) and not any(place[1].meets(box) for box in taken))
        offset, box = next(free, tries[0])
        offsets.append(offset)
        taken.append(box)
    return offsets


def _around(centre: Place, width: float, height: float) -> Box:
    x, y = centre
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _circles() -> Iterator[Place]:
    for radius in RADII_POINTS:
        for step in range(DIRECTIONS):
            angle = math.pi / 4 - step * 2 * math.pi / DIRECTIONS
            yield radius * math.cos(angle), radius * math.sin(angle)
