"""The latest price of an instrument, its age in trading time and its volume of the last 24 hours, for quotes and for orders.

Some vendors keep fewer minutes than a day has: Kraken keeps 720. Where minutes are missing, longer bars take their place in
the volume.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from openbell.desk.bars.facts import stored_instead
from openbell.desk.bars.service import BarService
from openbell.market.bars import MINUTE, Bars, closed_at, total
from openbell.market.clock import iso
from openbell.market.errors import NoData
from openbell.market.instruments import Instrument
from openbell.market.partial_bars import over_closed_hours
from openbell.market.plural import in_words
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.market.trading_time import trading_seconds
from openbell.stores.port import Span

_DAY = 86400
_LONGEST = Timeframe.H1.seconds


@dataclass(frozen=True, slots=True)
class LatestPrice:
    """The newest closed minute bars of an instrument; the last close is its price."""

    minutes: Bars
    end: int
    """When the bar of the price ended."""
    now: float
    """The clock's time when it was read."""
    missed: float
    """Seconds for which the market has been open since."""

    @property
    def age(self) -> str:
        """How old the price is, in words."""
        open_for = f"its market has been open for {in_words(self.missed)} since"
        return f"newest price of {self.minutes.instrument} is of {iso(self.end)}; {open_for}"


async def latest_price(bars: BarService, instrument: Instrument, count: int = 1) -> LatestPrice:
    """Returns the price from the newest `count` minute bars. Raises `NoData`, `UnknownSymbol` or `FeedUnavailable`."""
    minutes = await bars.newest(instrument, Timeframe.M1, count)
    if not len(minutes):
        hint = await stored_instead(bars, instrument)
        raise NoData(f"No price of {instrument} yet: it has no minute bars{hint}", symbol=instrument.symbol)
    return price_of(minutes, bars.clock.epoch())


def price_of(minutes: Bars, now: float) -> LatestPrice:
    """Returns the price of the last of some minute bars, with its age at `now`."""
    end = int(minutes.time[-1]) + MINUTE
    return LatestPrice(minutes, end, now, trading_seconds(minutes.instrument, end, now))


@dataclass(frozen=True, slots=True)
class DayVolume:
    """A volume, and how many minutes it lacks."""

    volume: float
    missing: int

    @property
    def note(self) -> str | None:
        """What to say beside the volume; None if no minute is missing."""
        return f"volume_24h lacks {self.missing:,} minutes that are not stored" if self.missing else None


async def day_volume(service: BarService, minutes: Bars, now: float) -> DayVolume:
    """Returns the volume of the minutes that opened in the 24 hours before `now`; `minutes` are the newest ones."""
    window = Span(-int(-(now - _DAY) // MINUTE) * MINUTE, closed_at(minutes))
    counted = minutes.between(window.start, window.end)
    volumes, missing = [], 0
    for gap in await service.threads.run(missing_minutes, service, counted, window):
        missing += (gap.end - gap.start) // MINUTE
        for longer, span in await _longer(service, minutes.series, gap, window):
            counted = counted.take((counted.time < span.start) | (counted.time >= span.end))
            missing -= (min(span.end, gap.end) - max(span.start, gap.start)) // MINUTE
            volumes.append(longer.volume)
    return DayVolume(total(np.concatenate([counted.volume, *volumes])), missing)


def missing_minutes(service: BarService, minutes: Bars, window: Span) -> Sequence[Span]:
    """The parts of a window whose minutes are not stored; empty if nothing is known about any of them."""
    end = service.history.complete(minutes.series, window.end)
    gaps = service.edges.gaps(minutes.series, Span(window.start, end)) if window.start < end else []
    if not gaps or gaps == [Span(window.start, end)]:
        return []
    edges = [window.start, *(edge for gap in gaps for edge in (gap.start, gap.end)), end]
    stored = [(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop]
    at, found = window.start, []
    for start, stop in [*over_closed_hours(minutes.instrument, stored), (end, end)]:
        if start > at:
            found.append(Span(at, start))
        at = max(at, stop)
    return found


async def _longer(service: BarService, series: Series, gap: Span, window: Span) -> list[tuple[Bars, Span]]:
    """The shortest bars that cover a gap as far as they lie in the window, and the span of these bars; empty if none do."""
    known = {*service.store.timeframes(series.instrument), *service.history.known_natives(series.instrument)}
    for timeframe in (each for each in Timeframe if each in known and MINUTE < each.seconds <= _LONGEST):
        base, step = series.at(timeframe), timeframe.seconds
        start, end = gap.start // step * step, -(-gap.end // step) * step
        start, end = start if start >= window.start else start + step, end if end <= window.end else end - step
        if start >= end:
            continue
        span = Span(start, end)
        await service.history.fill(base, span)
        if not await service.threads.run(service.store.gaps, base, span):
            return [(await service.threads.run(service.store.read, base, start, end), span)]
    return []
