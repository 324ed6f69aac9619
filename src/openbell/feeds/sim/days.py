"""Trading hours of an asset class and the activity of each minute: rows of minutes, one row per trading day.

For stocks, a row is a session from premarket to the end of afterhours; for other classes it is a UTC day. Rows start on the
hour, and all rows of a class have the same length. Minutes in which the market is closed have variance 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from openbell.market.bars import Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times, table_for
from openbell.market.sessions import forex_open

DAY = 86400
_SESSION_MINUTES = 960
_DAY_MINUTES = 1440
_FRIDAY, _SATURDAY, _SUNDAY = 1, 2, 3  # days since 1970, modulo 7: 1970-01-01 was a Thursday


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """How the variance and volume of a day are distributed over its minutes."""

    variance: Values
    """Sums to 1; 0 in minutes in which the market is closed."""
    volume: Values
    """Relative to an average minute of regular hours."""
    regular: npt.NDArray[np.bool_]
    """True in regular hours."""


@dataclass(frozen=True, slots=True, eq=False)
class MinuteRows:
    """Rows of minutes: the start of each row (epoch seconds) and the index of its shape."""

    start: Times
    kind: Times
    shapes: tuple[Shape, ...]

    def __len__(self) -> int:
        return len(self.start)

    @property
    def number(self) -> Times:
        """Days since 1970."""
        return self.start // DAY

    def take(self, rows: slice) -> MinuteRows:
        """Returns some of the rows."""
        return MinuteRows(self.start[rows], self.kind[rows], self.shapes)

    def minutes(self) -> Times:
        """Returns the minutes of each row, as minutes since 1970."""
        return self.start[:, None] // 60 + np.arange(len(self.shapes[0].variance), dtype=np.int64)

    def variance(self) -> Values:
        """Returns `Shape.variance` of each row."""
        return np.stack([shape.variance for shape in self.shapes])[self.kind]

    def volume(self) -> Values:
        """Returns `Shape.volume` of each row."""
        return np.stack([shape.volume for shape in self.shapes])[self.kind]

    def regular(self) -> npt.NDArray[np.bool_]:
        """Returns `Shape.regular` of each row."""
        return np.stack([shape.regular for shape in self.shapes])[self.kind]


def days_between(asset_class: AssetClass, start: int, end: int) -> MinuteRows:
    """Returns all rows with a minute in [start, end)."""
    if asset_class is AssetClass.STOCK:
        return _sessions(start, end)
    first = np.arange(start // DAY, -(-end // DAY), dtype=np.int64) * DAY
    if asset_class is AssetClass.CRYPTO:
        return MinuteRows(first, np.zeros(len(first), dtype=np.int64), (_around_the_clock(0, _DAY_MINUTES, 15, 0.8),))
    return _forex(first[first // DAY % 7 != _SATURDAY])


def _sessions(start: int, end: int) -> MinuteRows:
    table = table_for(start, end)
    rows = slice(*np.searchsorted(table.premarket, (start - _SESSION_MINUTES * 60 + 1, end)))
    first = table.premarket[rows]
    hours = np.stack([(column[rows] - first) // 60 for column in (table.open, table.close, table.end)], axis=1)
    kinds, kind = np.unique(hours, axis=0, return_inverse=True)
    return MinuteRows(first, kind.reshape(-1), tuple(_session(*map(int, hours)) for hours in kinds))


def _forex(first: Times) -> MinuteRows:
    """Returns the rows of forex: Friday ends and Sunday begins at 17:00 in New York, 21:00 or 22:00 UTC."""
    kind = np.zeros(len(first), dtype=np.int64)
    for row in np.flatnonzero(np.isin(first // DAY % 7, (_FRIDAY, _SUNDAY))):
        sunday = first[row] // DAY % 7 == _SUNDAY
        summer = forex_open(int(first[row]) + 21 * 3600) == sunday
        kind[row] = 1 + 2 * sunday + summer
    # In the order of kinds: a whole day, Friday in winter and in summer, Sunday in winter and in summer.
    hours = ((0, 24), (0, 22), (0, 21), (22, 24), (21, 24))
    return MinuteRows(first, kind, tuple(_around_the_clock(60 * a, 60 * b, 14, 1.4) for a, b in hours))


@lru_cache(maxsize=16)
def _session(opening: int, closing: int, end: int) -> Shape:
    """Returns the shape of a session: most activity after the open and before the close, little in extended hours."""
    minute = np.arange(_SESSION_MINUTES, dtype=np.float64)
    through = (minute - opening + 0.5) / (closing - opening)
    u_shape = 0.6 + 2.4 * _squared(np.maximum(0.0, 0.55 - through)) / 0.3025 + 1.3 * _squared(through) * through
    before = 0.15 + 0.85 * _squared(minute / opening)
    after = 0.15 + 0.85 * _squared(np.maximum(0.0, 1 - (minute - closing) / (end - closing)))
    regular = (minute >= opening) & (minute < closing)
    extended = np.where(minute < opening, before, after)
    traded = minute < end
    variance = np.where(regular, u_shape, 0.22 * extended) * traded
    volume = np.where(regular, u_shape, 0.05 * extended) * traded
    return Shape(variance / np.cumsum(variance)[-1], volume, regular)


@lru_cache(maxsize=16)
def _around_the_clock(opening: int, closing: int, busiest_hour: int, swing: float) -> Shape:
    """Returns the shape of a UTC day: a wave with its maximum when both Europe and America trade."""
    minute = np.arange(_DAY_MINUTES, dtype=np.float64)
    away = np.abs((minute / 60 - busiest_hour + 12) % 24 - 12) / 12
    wave = (1 - swing / 3) + swing * _squared(1 - away)
    traded = (minute >= opening) & (minute < closing)
    variance = wave * traded
    return Shape(variance / np.cumsum(variance)[-1], variance, traded)


def _squared(value: Values) -> Values:
    return value * value
