"""A local Alpaca with any number of symbols, for desks that run as processes of their own."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.market.bars import MINUTE
from openbell.market.clock import SystemClock
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from tests.feeds.alpaca_server import FIRST_AFTER, AlpacaServer, StreamConnection, Values, _message, answer
from tests.operations.path import Path


class ManySymbols(AlpacaServer):
    """Sends the prices of `tests.operations.path` at the machine's time. It lists every symbol and has minutes only."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        super().__init__(SystemClock())
        self.rate = {"X-RateLimit-Limit": "10000", "X-RateLimit-Remaining": "9999"}  # of a paid plan
        self.assets_answer = answer(200, {})
        self._paths = {each: Path(number) for number, each in enumerate(instruments)}
        self._sent_until: dict[StreamConnection, int] = {}

    def _rows(self, instrument: Instrument, start: int, end: int, now: float) -> list[Values]:
        end = min(end, int((now - self.shown_after) // MINUTE) * MINUTE)
        columns = self._paths[instrument].bars(instrument, start, end).columns()
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _longer(self, series: Series, start: int, end: int, now: float) -> list[Values]:
        return []

    def _due(self, line: StreamConnection, now: float) -> list[str]:
        until = int((now - FIRST_AFTER) // MINUTE) * MINUTE
        since = self._sent_until.setdefault(line, int(line.opened_at // MINUTE) * MINUTE)
        if until <= since:
            return []
        self._sent_until[line] = until
        rows = ((each, row) for each in line.subscribed for row in self._rows(each, since, until, now))
        return [_message("b", each, row) for each, row in rows]
