"""The simulator as a feed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

from openbell.feeds.port import Batch, Feed
from openbell.feeds.sim.bars import bar_count, bars_of, minute_bars
from openbell.feeds.sim.extras import kinds_of, values
from openbell.feeds.sim.universe import LISTINGS
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import Clock, bounded
from openbell.market.errors import NoSuchSeries, UnknownSymbol
from openbell.market.extras import Extra
from openbell.market.instruments import Instrument
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.series_plan import Native
from openbell.market.timeframes import Timeframe
from openbell.stores.threads import Threads

_DAY = 86400
NATIVES = {
    Timeframe.M1: Native(reach=366 * _DAY),
    Timeframe.H1: Native(reach=3653 * _DAY),
    Timeframe.D1: Native(reach=3653 * _DAY),
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

    def count(self, instrument: Instrument, timeframe: Timeframe, start: int, end: int) -> int | None:
        """Returns the exact number, from the trading hours."""
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
            until = min(_minute(self._clock.epoch()), delivered + _DAY)
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
