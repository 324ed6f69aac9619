"""The coverage of pixels by lines, compared with counted points."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.charts.raster import PixelArea, line
from openbell.market.bars import Values

INSIDE = PixelArea(2, 3, 60, 50)


def drawn(x: Values, y: Values, width: float, inside: PixelArea = INSIDE) -> Values:
    canvas = np.zeros((60, 70))
    covered = line(x, y, width, inside)
    keys = covered.row * 1000 + covered.column
    assert len(np.unique(keys)) == len(keys), "a pixel occurs once"
    canvas[covered.row, covered.column] = covered.part
    return canvas


def counted(x: Values, y: Values, width: float, inside: PixelArea = INSIDE, points: int = 16) -> Values:
    """Returns the coverage by counting points: a point is covered if it is at most half a width from the line."""
    across = (np.arange(70 * points) + 0.5) / points
    down = (np.arange(60 * points) + 0.5) / points
    level = np.interp(across, x, y, left=np.nan, right=np.nan)
    piece = np.clip(np.searchsorted(x, across, side="right") - 1, 0, len(x) - 2)
    slope = (np.diff(y) / np.diff(x))[piece]
    half = width / 2 * np.sqrt(1 + slope**2)
    ends = np.stack((y[piece], y[piece + 1]))
    top = np.maximum(level - half, ends.min(axis=0) - width / 2)
    bottom = np.minimum(level + half, ends.max(axis=0) + width / 2)
    hit = (down[:, None] >= top) & (down[:, None] <= bottom)
    parts: Values = hit.reshape(60, points, 70, points).mean(axis=(1, 3))
    allowed = np.zeros((60, 70), dtype=bool)
    allowed[inside.top : inside.bottom, inside.left : inside.right] = True
    return np.where(allowed, parts, 0.0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
@settings(deadline=None, max_examples=60)
def test_equals_the_coverage_of_counted_points(seed: int, count: int, width: float) -> None:
    chance = np.random.default_rng(seed)
    x = np.cumsum(chance.uniform(0.4, 4.0, count)) - 3.0
    y = 25 + np.cumsum(chance.normal(0, chance.choice([0.0, 0.3, 3.0, 20.0]), count))
    if x[-1] - x[0] < 1:
        return
    assert np.abs(drawn(x, y, width) - counted(x, y, width)).max() < 0.13
    assert np.abs(drawn(x, y, width) - counted(x, y, width)).mean() < 0.004


def test_a_horizontal_line_covers_its_width() -> None:
    shown = drawn(np.array([5.0, 30.0, 55.0]), np.full(3, 20.25), 1.5)
    assert shown[:, 10] == pytest.approx(shown[:, 40])
    assert shown[19:22, 10] == pytest.approx([0.5, 1.0, 0.0], abs=1e-5)


def test_huge_values_give_finite_coverage() -> None:
    x = np.array([0.0, 10.0, 20.0, 30.0])
    for y in ([1e300, -1e300, 5.0, 6.0], [1e9, 1e9, 1e9, 1e9], [-1e300, 20.0, 1e300, 20.0]):
        shown = drawn(x, np.array(y), 1.5)
        assert np.isfinite(shown).all()
        assert shown.min() >= 0.0
        assert shown.max() <= 1.0


def test_lines_outside_the_clip_are_not_drawn() -> None:
    shown = drawn(np.array([-30.0, -10.0, 0.5]), np.array([20.0, 20.0, 21.0]), 1.5)
    assert not shown.any()


def test_dashes_leave_gaps() -> None:
    covered = line(np.array([4.0, 20.0, 44.0]), np.array([10.0, 20.0, 30.0]), 1.5, INSIDE, (4.0, 4.0))
    columns = set(covered.column.tolist())
    assert {4, 7, 12, 15} <= columns
    assert not {8, 11, 16, 19} & columns
