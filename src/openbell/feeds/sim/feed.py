"""The simulator as a feed: bars, and series other than bars, all computed from seed, symbol and time.

Order flow follows each minute's bar. The other extra series follow recent price changes and never use prices after their own
timestamp.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from openbell.feeds.port import Batch, Feed
from openbell.feeds.sim.bars import bar_count, bars_of, is_counted, minute_bars
from openbell.feeds.sim.days import DAY, days_between
from openbell.feeds.sim.noise import approximate_exp, lane, normals, salt, slow_normals, words
from openbell.feeds.sim.paths import Walk, trace
from openbell.feeds.sim.universe import FACTORS, LISTINGS
from openbell.market.bars import MINUTE, Bars, Values
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores.threads import Threads

_HOUR = 3600
_CHUNK = 32
"""The number of days whose path is computed at once."""

_PUBLISHED = {AssetClass.CRYPTO: 0, AssetClass.STOCK: 6 * _HOUR}
"""The time of the UTC day, in seconds, at which fear and greed is published: after the end of the previous trading day."""


def kinds_of(asset_class: AssetClass) -> tuple[str, ...]:
    """Returns the kinds of series that instruments of this class have."""
    return "delta", *(kind for kind, periodic in _PERIODIC.items() if asset_class in periodic.classes)


def values(kind: str, instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """Returns the values in [start, end), independent of the clock."""
    if kind == "delta":
        return _delta(instrument, seed, start, end)
    periodic = _PERIODIC[kind]
    late = _PUBLISHED[instrument.asset_class] if kind == "fear_greed" else 0
    first = -(-(start - late) // periodic.step) * periodic.step + late
    moments = np.arange(first, end, periodic.step, dtype=np.int64)
    return Extra(moments, periodic.values(instrument, seed, moments) if len(moments) else np.empty(0))


def _delta(instrument: Instrument, seed: int, start: int, end: int) -> Extra:
    """Returns volume bought minus volume sold of each minute, at its open time. It has the sign of the bar's change."""
    bars = minute_bars(instrument, seed, start, end)
    reach = bars.high - bars.low
    lean = np.divide(bars.close - bars.open, reach, out=np.zeros(len(bars)), where=reach > 0)
    share = 0.35 + 0.6 * lane(words(salt(seed, f"{instrument}: delta"), bars.time // 60), 0)
    decimals = 4 if instrument.asset_class is AssetClass.CRYPTO else 0
    return Extra(bars.time, np.round(bars.volume * lean * share, decimals) + 0.0)


def _funding(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns the funding rate per 8 hours, which is positive after a rise."""
    rate: Values = 0.0001 + 0.004 * _change(instrument, seed, moments, DAY)
    rate += 0.00004 * normals(salt(seed, f"{instrument}: funding"), moments // _HOUR)
    capped: Values = np.clip(rate, -0.003, 0.003)
    return np.round(capped, 8)


def _open_interest(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns the open interest in coins: about three days of volume, more after a rise."""
    hours = moments // _HOUR
    level = 0.18 * slow_normals(salt(seed, f"{instrument}: open interest, weeks"), hours, 24 * 11)
    level += 0.05 * slow_normals(salt(seed, f"{instrument}: open interest, days"), hours, 24)
    level += 1.2 * _change(instrument, seed, moments, 3 * DAY)
    usual = LISTINGS[instrument].volume * 1440 * 3
    return np.round(usual * approximate_exp(level), 3)


def _long_short(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns long accounts divided by short accounts: higher after a fall."""
    hours = moments // _HOUR
    level = 0.12 + 0.10 * slow_normals(salt(seed, f"{instrument}: long short, days"), hours, 60)
    level += 0.01 * normals(salt(seed, f"{instrument}: long short"), hours)
    level -= 3.0 * _change(instrument, seed, moments, DAY)
    return np.round(approximate_exp(level), 4)


def _fear_greed(instrument: Instrument, seed: int, moments: Times) -> Values:
    """Returns an index from 0 to 100 per asset class: higher after a rise of its factor, lower if it is volatile."""
    asset_class = instrument.asset_class
    factor = Walk(seed, asset_class.value, asset_class, FACTORS[asset_class].common)
    yesterday = moments // DAY - 1
    level = factor.levels(yesterday)[1]
    mood: Values = 0.09 * (level - factor.levels(yesterday - 7)[1]) + 0.04 * (level - factor.levels(yesterday - 30)[1])
    mood -= 0.25 * (factor.daily_volatility(yesterday) - 1)
    mood += 0.07 * normals(salt(seed, f"{asset_class.value}: fear and greed"), yesterday)
    mood /= np.sqrt(1 + mood * mood)  # limited to between −1 and 1
    return np.round(50 + 50 * mood)


def _change(instrument: Instrument, seed: int, moments: Times, span: int) -> Values:
    """Returns the relative price change over the `span` seconds before each time (on the hour)."""
    days = days_between(instrument.asset_class, int(moments[0]) - span - _HOUR, int(moments[-1]))
    rows = [days.take(slice(at, at + _CHUNK)) for at in range(0, len(days), _CHUNK)]
    paths = [trace(LISTINGS[instrument], instrument.asset_class, seed, some) for some in rows]
    price = np.concatenate([path.close[:, 59::60].reshape(-1) for path in paths])
    at = (moments - days.start[0]) // _HOUR - 1
    change: Values = price[at] / price[at - span // _HOUR] - 1.0
    return change


@dataclass(frozen=True, slots=True)
class _Periodic:
    """A series with a value every `step` seconds."""

    classes: frozenset[AssetClass]
    step: int
    values: Callable[[Instrument, int, Times], Values]


_CRYPTO = frozenset({AssetClass.CRYPTO})
_PERIODIC = {
    "funding": _Periodic(_CRYPTO, 8 * _HOUR, _funding),
    "open_interest": _Periodic(_CRYPTO, _HOUR, _open_interest),
    "long_short": _Periodic(_CRYPTO, _HOUR, _long_short),
    "fear_greed": _Periodic(frozenset({AssetClass.CRYPTO, AssetClass.STOCK}), DAY, _fear_greed),
}


NATIVES = {
    Timeframe.M1: Native(reach=366 * DAY),
    Timeframe.H1: Native(reach=3653 * DAY),
    Timeframe.D1: Native(reach=3653 * DAY),
}
"""A year of minutes, ten years of hours and days."""
_LONG = 20_000 * MINUTE
"""Longer computations run in a thread, because they would block the event loop noticeably."""


class SimFeed:
    """A simulated market: the same bars in every process, delivered when the clock reaches the end of each minute."""

    name = "sim"
    origin = Origin.SIMULATED
    source: Source | None = Source(Origin.SIMULATED, "sim")

    def __init__(self, clock: Clock, seed: int = 7) -> None:
        self._clock = bounded(clock)
        self._seed = seed
        self._threads = Threads("simulator")

    def route(self, instrument: Instrument) -> Feed:  # noqa: ARG002 - the port's signature
        """Returns itself."""
        return self

    def supports(self, instrument: Instrument) -> bool:
        """Returns True if the simulator has this instrument."""
        return instrument in LISTINGS

    def listed(self) -> Iterable[Instrument]:
        """Returns all instruments of the simulator."""
        return LISTINGS

    async def natives(self, instrument: Instrument) -> Mapping[Timeframe, Native]:  # noqa: ARG002 - the port's signature
        """Returns a year of minutes, ten years of hours and days; minutes add up to them."""
        return NATIVES

    async def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        """Returns the exact number, from the trading hours."""
        # The first count of a series takes up to 0.3 s; a thread for each of the next ones would take longer than they do.
        if end - start > _LONG and not is_counted(instrument, self._seed, timeframe, start, end):
            return await self._threads.run(bar_count, instrument, self._seed, timeframe, start, end)
        return bar_count(instrument, self._seed, timeframe, start, end)

    def watermark(self, now: float) -> float:
        """Returns `now`: a minute is complete as soon as it ends."""
        return now

    async def history(self, series: Series, start: int, end: int) -> Bars:
        """Returns the closed bars that opened in [start, end). Raises `UnknownSymbol`."""
        self._check(series.instrument)
        now = self._clock.epoch()
        start, end = max(start, _earliest(series.timeframe, now)), min(end, _minute(now))
        if end - start > _LONG:
            return await self._threads.run(bars_of, series, self._seed, start, end, now)
        return bars_of(series, self._seed, start, end, now)

    async def extra(self, kind: str, instrument: Instrument, start: int, end: int) -> Extra:
        """Returns the values in [start, end) up to the clock's time. Raises `UnknownSymbol` and `NoSuchSeries`."""
        self._check(instrument)
        known = kinds_of(instrument.asset_class)
        if kind not in known:
            raise NoSuchSeries(self.name, kind, instrument.symbol, f"available are {', '.join(known)}")
        now = self._clock.epoch()
        # The order flow of a minute is published at the minute's end, all other values at their own time.
        until = _minute(now) if kind == "delta" else int(now) + 1
        start, end = max(start, _earliest(Timeframe.M1, now)), min(end, until)
        if end - start > _LONG:
            return await self._threads.run(values, kind, instrument, self._seed, start, end)
        return values(kind, instrument, self._seed, start, end)

    async def close(self) -> None:
        """Begin no further computations, and do not wait for one that runs: it changes nothing."""
        self._threads.abandon()

    async def stream(self, instruments: Sequence[Instrument], since: int) -> AsyncGenerator[Batch, None]:
        """Yields the bars closed since `since`, at most a day at a time, then each minute as it closes.

        Raises `UnknownSymbol`.
        """
        for instrument in instruments:
            self._check(instrument)
        delivered = max(_minute(since + MINUTE - 1), _earliest(Timeframe.M1, self._clock.epoch()))
        while True:
            await self._clock.sleep_until(delivered + MINUTE)
            until = min(_minute(self._clock.epoch()), delivered + DAY)
            bars = await self._all(instruments, delivered, until)
            delivered = until
            yield Batch(bars, delivered)

    async def _all(self, instruments: Sequence[Instrument], start: int, end: int) -> tuple[Bars, ...]:
        def compute() -> tuple[Bars, ...]:
            found = (minute_bars(instrument, self._seed, start, end) for instrument in instruments)
            return tuple(bars for bars in found if len(bars))

        return await self._threads.run(compute) if (end - start) * len(instruments) > _LONG else compute()

    def _check(self, instrument: Instrument) -> None:
        if instrument not in LISTINGS:
            known = ", ".join(sorted(str(listed) for listed in LISTINGS))
            raise UnknownSymbol(str(instrument), f"the simulator has {known}")


def _earliest(timeframe: Timeframe, now: float) -> int:
    return _minute(NATIVES[timeframe].earliest(now))


def _minute(epoch: float) -> int:
    return int(epoch // MINUTE) * MINUTE
