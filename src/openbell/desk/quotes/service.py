"""What an instrument costs now, how that has changed, and how much it moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from openbell.desk.bars.call_deadlines import BarDeadline, during
from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.latest_price import day_volume, latest_price, missing_minutes
from openbell.desk.bars.service import MOST_CACHED, BarService
from openbell.market.bars import MINUTE, Bars, closed_at
from openbell.market.clock import iso
from openbell.market.errors import DataError, InsufficientData, StaleData, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.price_history import (
    DayFigures,
    PeriodChange,
    PreviousClose,
    RegularClose,
    YearRange,
    compared_from,
    day_figures,
    days_at,
    market_date,
    percent_change,
    period_changes,
    previous_close,
    regular_close,
    year_range,
)
from openbell.market.sessions import Phase, phase
from openbell.market.timeframes import Timeframe
from openbell.stores.port import Span

_HOUR = 3600
WINDOW = 100
"""Bars that a volatility is measured over, if there are so many."""
_ATR = 14
_LEAST = _ATR + 2
_DAYS = 375
"""Daily bars that cover a year and the day that it is compared with."""


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """What daily bars say about a price."""

    year: YearRange | None
    changes: dict[str, PeriodChange | None]


@dataclass(frozen=True, slots=True)
class Quote:
    """The current price, and what it is compared with. A change is None where there was no price that long ago.

    The price is the newest close; of a stock whose market is closed, that of regular hours.
    """

    price: float
    change_1h: float | None
    change_24h: float | None
    """Of a stock whose market is closed: since the close of the session before the price's."""
    day_since: int | None
    """When the bar of the price ended that `change_24h` compares with."""
    volume_24h: float
    end: int
    """When the bar of the price ended."""
    bar: Bars
    """That bar."""
    note: str | None
    """Says which data of the volume, the day or the history is missing; None if nothing is."""
    previous: PreviousClose | None
    day: DayFigures
    past: PriceHistory | None
    """None if there are no daily bars."""
    regular: RegularClose | None
    """Of a stock outside of regular hours. While its market is closed, it is the price."""
    newest: PreviousClose | None
    """The newest price outside of regular hours, if it is later than `regular`."""

    @property
    def change_day(self) -> float | None:
        """In per cent since the previous close."""
        return None if self.previous is None else percent_change(self.previous.price, self.price)


@dataclass(frozen=True, slots=True)
class Volatility:
    """How much an instrument moved over the newest closed bars."""

    deviation: float
    """Of the logarithms of close over close, as of a population."""
    annualized: float | None
    """In per cent a year of trading time: of a stock's bars, those that overlap regular hours. None if they are too few."""
    atr: float
    reach: float
    """Highest high less lowest low."""
    bars: Bars


class QuoteService:
    """What get_current_price and get_volatility ask."""

    def __init__(self, bars: BarService, stale_after: float) -> None:
        self._bars = bars
        self._stale_after = stale_after

    async def quote(self, instrument: Instrument) -> Quote:
        """The current price. Raises `StaleData` if the market has traded on without a new bar for too long."""
        latest = await latest_price(self._bars, instrument, MOST_CACHED)
        minutes, now = latest.minutes, latest.now
        newest = PreviousClose(float(minutes.close[-1]), latest.end)
        if latest.missed > self._stale_after:
            raise StaleData(
                f"The {latest.age}",
                symbol=instrument.symbol,
                last_price=newest.price,
                timestamp=iso(latest.end),
                age_s=int(now - latest.end),
                trading_age_s=int(latest.missed),
                threshold_s=self._stale_after,
            )
        volume = await day_volume(self._bars, minutes, now)
        regular = regular_close(minutes, now)
        apart = newest if regular and newest.at > regular.at else None
        if regular and phase(instrument, now) is Phase.CLOSED:
            minutes = minutes.between(0, regular.at)
        price, end = float(minutes.close[-1]), int(minutes.time[-1]) + MINUTE
        hour, day = (
            await self._bar_at(minutes, now - _HOUR),
            await self._bar_at(minutes, compared_from(instrument, latest.end, now)),
        )
        day_so_far, day_note = await self._day(minutes)
        past, past_note = await self._past(instrument, day_so_far, price, end, now)
        return Quote(
            price,
            _change(hour, price),
            _change(day, price),
            int(day.time[-1]) + MINUTE if len(day) else None,
            volume.volume,
            end,
            minutes.tail(1),
            "; ".join(filter(None, (volume.note, day_note, past_note))) or None,
            previous_close(minutes),
            day_so_far,
            past,
            regular,
            apart,
        )

    async def _day(self, minutes: Bars) -> tuple[DayFigures, str | None]:
        """The day of the newest minute; without figures if some of its minutes are not stored, and why."""
        nothing = DayFigures(None, None, None)
        days = days_at(minutes.instrument, int(minutes.time[-1]))
        if days is None:
            return nothing, None
        begun = Span(days[1].begin, min(days[1].end, closed_at(minutes)))
        if begun.start >= begun.end:
            return nothing, None
        gaps = await self._bars.threads.run(missing_minutes, self._bars, minutes.between(begun.start, begun.end), begun)
        if gaps or (minutes.time[0] > begun.start and len(minutes) >= MOST_CACHED):
            return nothing, "open, high and low of the day are null: some of its minutes are not stored"
        return day_figures(minutes, days[1]), None

    async def _past(
        self, instrument: Instrument, day: DayFigures, price: float, end: int, now: float
    ) -> tuple[PriceHistory | None, str | None]:
        """What daily bars say about a price. A failure to get them is a note: the price is known without them."""
        try:
            async with during(BarDeadline.PRICES):
                days = await self._bars.newest(instrument, Timeframe.D1, _DAYS)
        except (DataError, StoreError, UnknownSymbol) as error:
            return None, f"range_52w and changes are null: {error.message}"
        if not len(days):
            return None, None
        today = market_date(instrument, now)
        year = year_range(days, today, day, market_date(instrument, end - 1))
        return PriceHistory(year, period_changes(days, today, price)), None

    async def _bar_at(self, minutes: Bars, moment: float) -> Bars:
        """The bars that had closed at a moment, or the last of them; empty if there are none."""
        end = int((moment - MINUTE) // MINUTE + 1) * MINUTE
        known = minutes.between(0, end)
        if not len(known):
            known = await self._bars.threads.run(self._bars.store.tail, minutes.series, 1, end)
        return known

    async def volatility(self, instrument: Instrument, timeframe: Timeframe) -> Volatility:
        """Measured over the newest `WINDOW` closed bars. Raises `InsufficientData`."""
        bars, _ = await self._bars.page(instrument, timeframe, WINDOW, 0)
        if len(bars) < _LEAST:
            hint = await stored_instead(self._bars, instrument)
            raise InsufficientData(instrument.symbol, len(bars), _LEAST, hint)
        return await self._bars.threads.run(_measure, bars)


def _change(before: Bars, now: float) -> float | None:
    """In per cent since the last of these bars; None if there is none, or if the change is too large for a number."""
    return percent_change(float(before.close[-1]), now) if len(before) else None


def _measure(bars: Bars) -> Volatility:
    from openbell.indicators.catalogue.atr import atr
    from openbell.indicators.catalogue.histvol import histvol
    from openbell.indicators.regular_hours import session_days

    counted = int((session_days(bars) >= 0).sum())
    returns = np.diff(np.log(bars.close))
    with np.errstate(all="ignore"):  # a number that is not finite is refused where answers are made
        yearly = float(histvol(bars, counted - 1, "trading")[-1]) if counted > _ATR else nan
        return Volatility(
            deviation=float(np.sqrt(np.square(returns - returns.mean()).mean())),
            annualized=yearly if isfinite(yearly) else None,
            atr=float(atr(bars, _ATR)[-1]),
            reach=float(bars.high.max() - bars.low.min()),
            bars=bars,
        )
