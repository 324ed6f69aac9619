"""What strategies have earned in the last week, months or year, computed from bars."""

from __future__ import annotations

from datetime import UTC, datetime

from openbell.backtest.outcome import Period, period_of
from openbell.backtest.rules import Setup
from openbell.desk.bars.service import BarService
from openbell.desk.research.strategies.series_bars import SeriesBars, bars_since, series_named
from openbell.desk.research.strategies.strategy_advice import Ranked
from openbell.desk.research.workers import Workers
from openbell.strategies.errors import NoPerformance

MONTHS = {"1m": 1, "3m": 3, "6m": 6, "1y": 12}
PERIODS = ("1w", *MONTHS)
_WEEK = 7 * 86400


class PerformanceService:
    """Periods of strategies."""

    def __init__(self, bars: BarService, workers: Workers, setup: Setup) -> None:
        self._bars = bars
        self._workers = workers
        self._setup = setup

    async def of(self, strategy: Ranked, period: str) -> tuple[Period, SeriesBars]:
        """Returns what a strategy has earned in a period up to now. Raises `NoPerformance` if it did not trade."""
        made = strategy.implementation
        stretch = await bars_since(self._bars, series_named(made.symbol, made.timeframe), made.first)
        start = _start(self._bars.clock.epoch(), period)
        found = await self._workers.run(
            period_of, strategy.known.spec, made.parameters, stretch.bars, self._setup, start
        )
        if not found.closed:
            raise NoPerformance(
                f"{strategy.known.spec.name} has closed no trade of {made.symbol} in the last {period}; a longer period "
                "may have some",
                strategy_id=made.id,
                period=period,
            )
        return found, stretch


def _start(now: float, period: str) -> int:
    """Returns the start of a period that ends now: a week, or calendar months, before."""
    if period == "1w":
        return int(now) - _WEEK
    then = datetime.fromtimestamp(now, UTC)
    months = then.year * 12 + then.month - 1 - MONTHS[period]
    year, month = divmod(months, 12)
    day = then.day
    while True:  # 31 May minus three months is 28 February
        try:
            return int(then.replace(year=year, month=month + 1, day=day).timestamp())
        except ValueError:
            day -= 1
