"""The received rows of each minute, and which of them have not been delivered yet."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from openbell.feeds.alpaca.wire import Row
from openbell.market.bars import Bars, make
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

_KEPT = 3600
"""Seconds for which delivered rows are kept, to recognize duplicates."""


class RowSource(IntEnum):
    """The source of a row, in ascending order of precedence.

    The first bar of a minute on the stream is its oldest version, the history has that version or a later one, and a
    correction on the stream is the latest. So a first bar that arrives late or twice never replaces a correction.
    """

    FIRST = 1
    HISTORY = 2
    CORRECTION = 3


class Minutes:
    """The rows by instrument and minute; each version of a row is delivered once."""

    def __init__(self) -> None:
        self._rows: dict[Instrument, dict[int, tuple[RowSource, Row]]] = {}
        self._undelivered: dict[Instrument, set[int]] = {}

    def add(self, instrument: Instrument, rows: Iterable[Row], source: RowSource) -> None:
        """Adds rows, except for minutes with a row of higher precedence; among equal sources the last row is kept."""
        kept, undelivered = self._rows.setdefault(instrument, {}), self._undelivered.setdefault(instrument, set())
        for row in rows:
            time = row[0]
            earlier = kept.get(time)
            if earlier and earlier[0] > source:
                continue
            kept[time] = (source, row)
            if earlier is None or earlier[1] != row:
                undelivered.add(time)

    def has_undelivered(self, until: int) -> bool:
        """Returns True if a minute that opened before `until` has an undelivered row."""
        return any(at < until for times in self._undelivered.values() for at in times)

    def take(self, until: int) -> tuple[Bars, ...]:
        """Returns the undelivered rows of the minutes that opened before `until`, and counts them as delivered."""
        parts = []
        for instrument, undelivered in self._undelivered.items():
            kept = self._rows[instrument]
            if times := sorted(at for at in undelivered if at < until):
                columns = zip(*(kept[at][1] for at in times), strict=True)
                parts.append(make(instrument, Timeframe.M1, *columns))
                undelivered.difference_update(times)
            for at in [at for at in kept if at < until - _KEPT]:
                del kept[at]
        return tuple(parts)
