"""The watches of subscriptions to crossings, fed with the bars that close: of connections, and of the engine."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from math import inf

from openbell.desk.events.supervision import FailingUnits
from openbell.desk.quotes.signals import SeriesReading, SignalService
from openbell.market.errors import InvalidParameter, OpenbellError
from openbell.market.timeframes import SHORT, name_of
from openbell.signals.crossing_alerts import CrossingAlert, CrossingSubscription, Watch
from openbell.signals.crossings import NEEDED

_CROSSINGS = "crossings of"
_READ_SECONDS = 5.0
"""How long one look may wait for the bars of its series. Those that take longer are read at a later one."""


class CrossingWatches:
    """A watch for each subscription. A series is read once for all of its subscriptions."""

    def __init__(self, signals: SignalService, failing: FailingUnits) -> None:
        """`failing` is where series that cannot be read are noted."""
        self._signals = signals
        self._failing = failing
        self.watches: dict[Hashable, Watch] = {}
        """By the key of the subscription."""
        self.all_read = True
        """False if the last look could not read some series, for whatever reason."""

    async def observe(self, subscriptions: Mapping[Hashable, CrossingSubscription], since: float = 0.0) -> bool:
        """Pass the bars that have closed to the watches; bars that ended before `since` do not trigger.

        Returns False if some could not be read, and must be read again even if no other bar closes.
        """
        series = defaultdict(list)
        for key, each in subscriptions.items():
            series[each.instrument, each.timeframe].append(self.watches[key])
        complete = self.all_read = True
        deadline = asyncio.get_running_loop().time() + _READ_SECONDS
        names = {(of, timeframe): f"{of} {name_of(timeframe, SHORT)}" for of, timeframe in series}
        for which, watches in series.items():
            try:
                async with asyncio.timeout_at(deadline):
                    reading = await self._signals.read(*which)
                for watch in watches:
                    observe(watch, reading, since)
            except TimeoutError:
                complete = self.all_read = False
            except Exception as error:  # noqa: BLE001 - the other series are read
                self._failing.failed(_CROSSINGS, names[which], error)
                complete, self.all_read = complete and isinstance(error, OpenbellError), False
            else:
                self._failing.works(_CROSSINGS, names[which])
        self._failing.keep(_CROSSINGS, set(names.values()))
        return complete

    def due(self, now: float) -> Iterator[tuple[Hashable, CrossingAlert]]:
        """Yields and removes the alerts that are due, each with the key of its subscription."""
        for key, watch in self.watches.items():
            if (alert := watch.take(now)) is not None:
                yield key, alert

    def next_due(self) -> float:
        """The time at which the next alert that a throttle holds back is due; infinity if there is none."""
        return min((watch.due() for watch in self.watches.values()), default=inf)


def observe(watch: Watch, reading: SeriesReading, since: float = 0.0) -> None:
    """Pass every bar that closed since the last call to the watch. Bars that ended before `since` do not trigger."""
    if reading.series is None:
        return
    times = reading.bars.time
    first = int(times.searchsorted(watch.seen, side="right")) if watch.seen >= 0 else len(times) - 1
    recent = int(times.searchsorted(since - reading.bars.timeframe.seconds, side="right"))
    # The first bar after the warm-up has no earlier values to compare with.
    first = max(first, recent, NEEDED - 1)
    if first >= NEEDED and times[first - 1] >= watch.seen >= 0:
        watch.begin(int(times[first - 1]), reading.series.crossings(first - 1))
    for index in range(first, len(times)):
        watch.observe(reading.series.snapshot(index), reading.series.crossings(index))


def unknown(subscription_id: str) -> InvalidParameter:
    """Returns the error for an id that is not one of the caller's subscriptions."""
    return InvalidParameter(f"no subscription {subscription_id!r}", subscription_id=subscription_id)
