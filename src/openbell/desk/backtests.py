"""Backtests of strategies on bars of the desk, fetched as needed."""

from __future__ import annotations

from dataclasses import replace

from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, backtest
from openbell.desk.bar_facts import stored_instead
from openbell.desk.bars import BarService
from openbell.desk.regular_parts import RegularPart, regular_part_of
from openbell.indicators.regular_hours import partly_regular
from openbell.market.bars import Bars, closed_at
from openbell.market.errors import InsufficientData, InvalidParameter, NoData
from openbell.market.lookback import lookback_start
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.port import Span
from openbell.strategies.compiled import Compiled

_USUAL_BARS = 1250
"""The bars of a backtest without a start: five years of days of a stock."""
_FEWEST = 2
_SESSIONS = 2 * 86400
"""Seconds. Indicators of a session need all of the session of the first bar, and some the one before it."""


class BacktestService:
    """Runs strategies over closed bars of a series."""

    def __init__(self, bars: BarService) -> None:
        self._bars = bars

    async def run(
        self, strategy: Compiled, series: Series, setup: Setup, start: int | None = None, end: int | None = None
    ) -> Backtest:
        """Trade a strategy on the bars that open in [start, end); by default on the newest 1,250.

        Bars before `start` warm up its indicators. Raises `InsufficientData` if there are fewer than two bars, and `NoData`
        if an indicator needs minutes and there are none.
        """
        until = self._bars.closed_until() if end is None else end
        first = lookback_start(series.instrument, series.timeframe, _USUAL_BARS, until) if start is None else start
        if first >= until:
            raise InvalidParameter("the start must be before the end")
        warm = lookback_start(series.instrument, series.timeframe, _warm_up(strategy, series), first)
        bars = await self._bars.span(series, warm, until)
        count = len(bars) - int(bars.time.searchsorted(first))
        if count < _FEWEST:
            hint = await stored_instead(self._bars, series.instrument)
            raise InsufficientData(series.instrument.symbol, count, _FEWEST, hint)
        part = await self._regular(strategy, bars, count)
        found = await self._bars.threads.run(_run, strategy, bars, setup, first, part)
        note = part.note(count) if part else None
        return replace(found, note=f"{_regular_titles(strategy)}: {note}") if note else found

    async def _regular(self, strategy: Compiled, bars: Bars, count: int) -> RegularPart | None:
        """Returns the regular-hours part of the bars if an indicator needs it and the bars hold more than that."""
        if not _regular_titles(strategy) or not partly_regular(bars).any():
            return None
        part = await regular_part_of(self._bars, bars, Span(int(bars.time[0]), closed_at(bars)))
        missing, overlapping = part.missing(count)
        if overlapping and missing == overlapping:
            what = f"{_regular_titles(strategy)} on {name_of(bars.timeframe, SHORT)} bars of {bars.instrument}"
            raise NoData(
                f"{what} is computed from minutes of regular hours, and there are none in this time; use bars of 30 minutes "
                "or less, or import minutes",
                symbol=bars.instrument.symbol,
            )
        return part


def _warm_up(strategy: Compiled, series: Series) -> int:
    """Returns the number of bars before the first one that is traded."""
    by_session = any(step.indicator.regular or step.indicator.by_day for step in strategy.steps)
    return strategy.warmup + (_SESSIONS // series.timeframe.seconds if by_session else 0)


def _regular_titles(strategy: Compiled) -> str:
    """Returns the titles of the indicators that are computed on regular hours; empty if none is."""
    return ", ".join(dict.fromkeys(step.indicator.title for step in strategy.steps if step.indicator.regular))


def _run(strategy: Compiled, bars: Bars, setup: Setup, first: int, part: RegularPart | None) -> Backtest:
    return backtest(strategy, bars, setup, first, regular=part.bars if part else None)
