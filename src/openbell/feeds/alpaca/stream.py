"""Complete minutes out of live connections and the history.

First the connections are subscribed, then the history is asked: so a minute is in one of the two. A minute that ended before
we listened is taken from the history once that has had time to show it; any later one is complete a settling time after its
end, when every connection has answered a ping, because what was sent before the pong has been read by then. What may have
been corrected while nobody listened is looked at a second time, when the vendor is done with it.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any

from openbell.feeds.alpaca.minutes import Minutes, Told
from openbell.feeds.alpaca.rest import Rest
from openbell.feeds.alpaca.socket import Socket
from openbell.feeds.alpaca.wire import Row
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE
from openbell.market.clock import Clock
from openbell.market.instruments import AssetClass, Instrument

log = logging.getLogger(__name__)

FINAL = 75
"""Seconds after its end at which a minute in the history is final: the vendor revises it for 30."""
SETTLE = 5
"""Seconds after its end at which a minute that we listened to is complete."""
SHOWN = 30
"""Seconds after its end by which the history has a minute that traded."""
_REVISED = 3 * MINUTE
"""How far back from now the vendor may still have changed something."""
_ANOTHER_TIME = 120.0
"""Seconds between the vendor's time and ours from which on we live in another: its live bars are not our market's."""
_DAY = 86400


class Doubts:
    """Spans that were delivered, but may have been corrected when nobody listened. Outlives the streams of a feed."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """One more span, joined with those that it touches."""
        if start >= end:
            return
        touching = [span for span in self.spans if span[0] <= end and start <= span[1]]
        apart = [span for span in self.spans if span not in touching]
        touching.append((start, end))
        self.spans = sorted([*apart, (min(s for s, _ in touching), max(e for _, e in touching))])

    def settle(self, spans: Sequence[tuple[int, int]]) -> None:
        """These are certain now; one that has grown meanwhile is not among them."""
        self.spans = [span for span in self.spans if span not in spans]


class Stream:
    """One stream of a feed, from opening to its end."""

    def __init__(
        self,
        clock: Clock,
        rest: Rest,
        keys: tuple[str, str],
        urls: dict[AssetClass, str],
        instruments: Sequence[Instrument],
        since: int,
        doubts: Doubts,
    ) -> None:
        self._clock = clock
        self._rest = rest
        self._instruments = instruments
        self._since = -(-since // MINUTE) * MINUTE
        self._doubts = doubts
        self._minutes = Minutes()
        self._wake = asyncio.Event()
        self._second_look = math.inf
        self._readers: list[asyncio.Task[None]] = []
        self._sockets = [
            Socket(url, keys, {i.symbol: i for i in wanted}, self._on_row, self._on_bad)
            for asset_class, url in urls.items()
            if (wanted := [i for i in instruments if i.asset_class is asset_class])
        ]
        self._heard_from: float = math.inf
        """The minutes that open from here on are all heard live; without a connection there are none."""
        self.complete_until = self._since

    @property
    def healthy(self) -> bool:
        """Whether what it has completed is the vendor's newest."""
        listening = bool(self._readers) and not any(reader.done() for reader in self._readers)
        return listening and self.complete_until > self._since

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """The batches, until closed by the caller. Raises `FeedUnavailable` when a connection breaks."""
        try:
            if self._clock.moving:
                await self._listen()
            while True:
                await self._wait(min(self._due(), self._second_look))
                before = self.complete_until
                looked = await self._look_again() if self._clock.epoch() >= self._second_look else ()
                if self._clock.epoch() >= self._due():
                    await self._complete()
                bars = self._minutes.take(self.complete_until)
                if bars or self.complete_until > before:
                    yield Batch(bars, self.complete_until)
                self._doubts.settle(looked)  # not before it is delivered: a connection may break in between
        finally:
            await self._close()

    async def _listen(self) -> None:
        """Open every connection, and say from which minute on nothing can be missed."""
        await _together(*(socket.open() for socket in self._sockets))
        self._readers = [asyncio.create_task(socket.read()) for socket in self._sockets]
        for reader in self._readers:
            reader.add_done_callback(lambda _: self._wake.set())
        # Our clock may be behind the vendor's by as much as a minute may take to settle.
        heard = _minute(self._clock.epoch() + SETTLE)
        self._heard_from = heard
        self._doubts.add(max(self._since, heard - _REVISED), heard)
        self._second_look = heard + FINAL

    def _on_row(self, instrument: Instrument, row: Row, told: Told) -> None:
        if row.time > self._clock.epoch() + MINUTE:
            log.warning("dropped a bar of Alpaca's stream (%s): from the future", instrument)
        elif row.time >= self._since or told is Told.CORRECTION:  # before that, the history was final
            self._minutes.add(instrument, (row,), told)
            if row.time < self.complete_until and self._minutes.any_before(self.complete_until):
                self._wake.set()

    def _on_bad(self) -> None:
        """A bar came that nobody can read: the history may have it right."""
        now = _minute(self._clock.epoch())
        self._doubts.add(max(self._since, now - _REVISED), now + MINUTE)
        self._second_look = now + MINUTE + FINAL

    def _lag(self) -> int:
        return SHOWN if self.complete_until < self._heard_from else SETTLE

    def _due(self) -> float:
        """When the next minute will be complete."""
        return self.complete_until + MINUTE + self._lag()

    async def _complete(self) -> None:
        """Make complete what can be by now, at most a day at a time."""
        lag = self._lag()
        until = min(_minute(self._clock.epoch() - lag), self.complete_until + _DAY)
        if self.complete_until < self._heard_from:
            await self._fetch(self.complete_until, int(min(until, self._heard_from)))
            if self._readers and self._rest.apart > _ANOTHER_TIME:
                log.info("the clock is %.0f s away from Alpaca's: its history only", self._rest.apart)
                await self._stop_listening()
        await _together(*(socket.settle() for socket in self._sockets if self._readers))
        self._check()
        self.complete_until = until

    async def _fetch(self, start: int, end: int) -> None:
        for instrument, rows in (await self._rest.rows(self._instruments, start, end)).items():
            self._minutes.add(instrument, rows, Told.HISTORY)

    async def _look_again(self) -> Sequence[tuple[int, int]]:
        """Ask the history for what was in doubt; only what differs from what we know is news."""
        self._second_look = math.inf
        spans = self._doubts.spans
        for start, end in spans:
            await self._fetch(start, end)
        return spans

    async def _wait(self, due: float) -> None:
        """Until that time, or a correction to hand out, or a failure."""
        if self._clock.epoch() < due and not self._wake.is_set():
            waiting = (
                asyncio.ensure_future(self._clock.sleep_until(due)),
                asyncio.ensure_future(self._wake.wait()),
            )
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _end(waiting)
        self._wake.clear()
        self._check()

    def _check(self) -> None:
        for reader in self._readers:
            if reader.done():
                reader.result()  # raises: a reader only ends by failing

    async def _stop_listening(self) -> None:
        readers, self._readers = self._readers, []
        sockets, self._sockets = self._sockets, []
        self._heard_from = self._second_look = math.inf
        try:
            await _end(readers)
        finally:
            await _together(*(socket.close() for socket in sockets))

    async def _close(self) -> None:
        if self._readers:
            self._doubts.add(max(self._since, self.complete_until - _REVISED), self.complete_until)
            for bars in self._minutes.take(self.complete_until):  # news that nobody took any more
                for at in bars.time.tolist():
                    self._doubts.add(at, at + MINUTE)
        await self._stop_listening()


async def _together(*steps: Coroutine[Any, Any, None]) -> None:
    """Run steps side by side; if one fails the others are ended before its error goes on."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        if tasks:
            await asyncio.gather(*tasks)
    finally:
        await _end(tasks)


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _minute(epoch: float) -> int:
    return int(epoch // MINUTE) * MINUTE
