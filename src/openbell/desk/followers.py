"""Signals on new bars for many alerts: streams that are kept from bar to bar, arrays where there is none yet.

Following a bar costs about 10 µs, computing an indicator over 3,000 bars 0.1 to 2 ms, warming up a stream 3 to 20 ms. So a
signal is first computed from arrays, and a stream is warmed up for the next bar, a few streams in each round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from openbell.desk.bars import RING, BarService
from openbell.desk.indicators import IndicatorService
from openbell.indicators.channels import Signal
from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.follower import FollowedSignal, Follower, SeriesChanged, can_follow
from openbell.market.bars import Bars, bucket_bounds, closed_at
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

_WARM_UPS = 10
"""Streams that are warmed up in one round."""
_LONGEST = RING // 2
"""Bars after which a stream is built anew: arrays use the newest 3,000 bars, and a stream all since its first."""

_Key = tuple[Instrument, Timeframe, str]


@dataclass(slots=True)
class _Followed:
    """A stream, and the signals that may be asked for again."""

    follower: Follower
    seen: Bars
    """The bars that it has followed."""
    complete_since: float
    """`recent` holds every signal of bars that closed after this time."""
    recent: list[FollowedSignal]
    bars: int = 0


@dataclass(frozen=True, slots=True)
class NewSignals:
    """The closed bars of a series, and by indicator the signals on them, the newest ones at least."""

    bars: Bars
    by_name: dict[str, list[Signal]]


class SignalFollowers:
    """Finds the signals of new bars."""

    def __init__(self, bars: BarService, indicators: IndicatorService) -> None:
        self._bars = bars
        self._indicators = indicators
        self._followed: dict[_Key, _Followed] = {}
        self._warm_ups = 0

    def begin_round(self) -> None:
        """Allow a few streams to be warmed up; call it once for each new bar of all series."""
        self._warm_ups = _WARM_UPS

    async def prepare(self, bars: Bars, requests: list[IndicatorRequest]) -> None:
        """Warm up streams of the newest closed bars, so that the next bar is followed."""
        for request in requests:
            if (bars.instrument, bars.timeframe, request.indicator.name) not in self._followed:
                await self._warm_up(request, bars)

    async def since(
        self, instrument: Instrument, timeframe: Timeframe, requests: list[IndicatorRequest], since: float
    ) -> NewSignals:
        """Returns the signals of bars that closed after `since`; older ones may be among them."""
        bars = await self._bars.latest(instrument, timeframe)
        followed: dict[str, list[FollowedSignal]] = {}
        for request in requests if len(bars) else ():
            signals = self._follow(request, bars, since)
            if signals is not None:
                followed[request.indicator.name] = signals
        computed: dict[str, list[Signal]] = {}
        missing = [request for request in requests if request.indicator.name not in followed]
        if missing:
            evaluated = await self._indicators.evaluate(instrument, timeframe, RING, missing)
            bars = evaluated.bars
            computed = {each.request.indicator.name: list(each.channels.signals) for each in evaluated.indicators}
            for request in missing:
                await self._warm_up(request, bars)
        return NewSignals(bars, {name: _placed(signals, bars) for name, signals in followed.items()} | computed)

    def _follow(self, request: IndicatorRequest, bars: Bars, since: float) -> list[FollowedSignal] | None:
        """Returns the signals since a time from the kept stream; None if there is none that can tell."""
        key = (bars.instrument, bars.timeframe, request.indicator.name)
        kept = self._followed.get(key)
        if kept is None or not self._continues(kept, bars, since):
            self._followed.pop(key, None)
            return None
        try:
            new = kept.follower.update(bars)
        except SeriesChanged:
            del self._followed[key]
            return None
        kept.recent = [each for each in (*kept.recent, *new) if _end(bars, each.time) > since]
        kept.complete_since, kept.seen = max(kept.complete_since, since), bars
        kept.bars += 1
        return kept.recent

    def _continues(self, kept: _Followed, bars: Bars, since: float) -> bool:
        """Returns False if bars that were followed have changed, or signals are asked for that were dropped."""
        last = kept.follower.last_time
        if last is None or since < kept.complete_since or kept.bars >= _LONGEST:
            return False
        first = max(int(bars.time[0]), int(kept.seen.time[0]))
        return bars.between(first, last + 1).same_as(kept.seen.between(first, last + 1))

    async def _warm_up(self, request: IndicatorRequest, bars: Bars) -> None:
        if not can_follow(request.indicator) or request.indicator.regular or self._warm_ups <= 0:
            return
        self._warm_ups -= 1
        follower = await self._bars.threads.run(Follower, request, bars)
        key = (bars.instrument, bars.timeframe, request.indicator.name)
        self._followed[key] = _Followed(follower, bars, closed_at(bars), [])


def _placed(signals: list[FollowedSignal], bars: Bars) -> list[Signal]:
    """Returns signals of a followed series with their indexes in `bars`."""
    return [
        Signal(int(bars.time.searchsorted(each.time)), each.value, each.label)
        for each in signals
        if each.time in bars.time
    ]


def _end(bars: Bars, time: int) -> int:
    """Returns when the bar that opened at a time closes."""
    return int(bucket_bounds(bars.instrument, bars.timeframe, np.array([time], dtype=np.int64))[1][0])
