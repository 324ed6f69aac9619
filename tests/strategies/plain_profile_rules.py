"""Entries and exits of the volume profile, from the published definition of the value area.

The range of the latest 100 bars is divided into 24 rows, and the volume of a bar is spread evenly from its low to its high.
The value area starts at the lowest row with the most volume. It grows by two rows above or below, whichever hold more volume
(those above if equal), until it holds 70 % of the volume.
"""

from __future__ import annotations

from tests.strategies.plain_comparisons import under
from tests.strategies.plain_rules import Rows, over

EQUAL = 1e-9
"""Volumes that differ by less than this share of all the volume are equal."""


def volume_by_row(window: Rows, bottom: float, height: float) -> list[float]:
    found = [0.0] * 24
    for bar in window:
        first, last = int((bar.low - bottom) / height), int((bar.high - bottom) / height)
        for row in range(first, min(last, 23) + 1):
            within = min(bar.high, bottom + (row + 1) * height) - max(bar.low, bottom + row * height)
            found[row] += bar.volume * within / (bar.high - bar.low)
    return found


def value_rows(volumes: list[float]) -> tuple[int, int]:
    """The first row of the value area, and the row after its last."""
    total = sum(volumes)
    start = next(row for row, volume in enumerate(volumes) if volume >= max(volumes) - EQUAL * total)
    end = start + 1
    while sum(volumes[start:end]) < (0.7 - EQUAL) * total:
        above, below = volumes[end : end + 2], volumes[max(0, start - 2) : start]
        if above and (not below or sum(above) >= sum(below) - EQUAL * total):
            end += len(above)
        else:
            start -= len(below)
    return start, end


def value_areas(rows: Rows) -> list[tuple[float, float] | None]:
    """The lowest and the highest price of the value area at each bar."""
    found: list[tuple[float, float] | None] = [None] * 99
    for at in range(99, len(rows)):
        window = rows[at - 99 : at + 1]
        bottom = min(bar.low for bar in window)
        height = (max(bar.high for bar in window) - bottom) / 24
        start, end = value_rows(volume_by_row(window, bottom, height))
        found.append((bottom + start * height, bottom + end * height))
    return found


def entries(rows: Rows) -> list[int]:
    areas, found = value_areas(rows), []
    for at in range(1, len(rows)):
        before, now = areas[at - 1], areas[at]
        if before and now and not over(rows[at - 1].close, before[0]):
            found += [at] if over(rows[at].close, now[0]) and under(rows[at].close, now[1]) else []
    return found


def exits(rows: Rows) -> list[int]:
    pairs = enumerate(zip(rows, value_areas(rows), strict=True))
    return [at for at, (row, area) in pairs if area and (under(row.close, area[0]) or over(row.close, area[1]))]


ENTRIES = {"VOLUME_PROFILE": entries}
EXITS = {"VOLUME_PROFILE": exits}
