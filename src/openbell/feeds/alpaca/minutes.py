"""What a stream knows of each minute, and what of it has still to be delivered."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from openbell.feeds.alpaca.wire import Row
from openbell.market.bars import Bars, make
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

_KEPT = 3600
"""Seconds for which delivered rows are remembered, to tell news from repetition."""


class Told(IntEnum):
    """How a row came, the weaker word first.

    A minute's first bar on the stream is its oldest version, the history has it or a later one, and a correction on the
    stream is as new as anything: so a first bar that comes late or twice never undoes a correction.
    """

    FIRST = 1
    HISTORY = 2
    CORRECTION = 3


class Minutes:
    """Rows by instrument and minute; each version is handed out once."""

    def __init__(self) -> None:
        self._known: dict[Instrument, dict[int, tuple[Told, Row]]] = {}
        self._news: dict[Instrument, set[int]] = {}

    def add(self, instrument: Instrument, rows: Iterable[Row], told: Told) -> None:
        """Take rows, unless a stronger word on their minute is known; among equals the last counts."""
        known, news = self._known.setdefault(instrument, {}), self._news.setdefault(instrument, set())
        for row in rows:
            held = known.get(row.time)
            if held and held[0] > told:
                continue
            known[row.time] = (told, row)
            if held is None or held[1] != row:
                news.add(row.time)

    def any_before(self, until: int) -> bool:
        """Whether something to hand out opened before this time."""
        return any(at < until for news in self._news.values() for at in news)

    def take(self, until: int) -> tuple[Bars, ...]:
        """The news of the minutes that opened before `until`."""
        parts = []
        for instrument, news in self._news.items():
            known = self._known[instrument]
            if times := sorted(at for at in news if at < until):
                columns = zip(*(known[at][1] for at in times), strict=True)
                parts.append(make(instrument, Timeframe.M1, *columns))
                news.difference_update(times)
            for at in [at for at in known if at < until - _KEPT]:
                del known[at]
        return tuple(parts)
