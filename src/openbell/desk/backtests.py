"""Backtests of strategies on bars of the desk, fetched as needed."""

from __future__ import annotations

from math import inf

from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.desk.bar_facts import stored_instead
from openbell.desk.bars import BarService
from openbell.market.errors import InsufficientData, InvalidParameter
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.strategies.compiled import Compiled

_USUAL_BARS = 1250
"""The bars of a backtest without a start: five years of days of a stock."""
_FEWEST = 2


class BacktestService:
    """Runs strategies over closed bars of a series."""

    def __init__(self, bars: BarService) -> None:
        self._bars = bars

    async def run(
        self, strategy: Compiled, series: Series, setup: Setup, start: int | None = None, end: int | None = None
    ) -> Backtest:
        """Trade a strategy on the bars that open in [start, end); by default on the newest 1,250.

        Bars before `start` warm up its indicators. Raises `InsufficientData` if there are fewer than two bars.
        """
        until = self._bars.closed_until() if end is None else end
        first = lookback_start(series.instrument, series.timeframe, _USUAL_BARS, until) if start is None else start
        if first >= until:
            raise InvalidParameter("the start must be before the end")
        warm = lookback_start(series.instrument, series.timeframe, strategy.warmup, first)
        bars = await self._bars.span(series, warm, until)
        found = await self._bars.threads.run(backtest, strategy, bars, setup, first, end if end is not None else inf)
        if len(found.bars) < _FEWEST:
            hint = await stored_instead(self._bars, series.instrument)
            raise InsufficientData(series.instrument.symbol, len(found.bars), _FEWEST, hint)
        return found
