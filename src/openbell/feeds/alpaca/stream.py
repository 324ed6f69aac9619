"""Builds complete minutes from live connections and the history.

The connections are subscribed before the history is fetched, so every minute is in one of the two. Minutes that ended before
the subscription are read from the history, `IN_HISTORY_AFTER` seconds after their end. A later minute is complete
`COMPLETE_AFTER` seconds after its end, when every connection has answered a ping: then all messages sent before the pong
have been read. Minutes that may have been corrected while no connection was open are fetched again when they are final.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any

from openbell.feeds.alpaca.rest import Rest
from openbell.feeds.alpaca.socket import Minutes, RowSource, Socket
from openbell.feeds.alpaca.wire import Row
from openbell.feeds.port import Batch
from openbell.market.bars import MINUTE
from openbell.market.clock import Clock
from openbell.market.instruments import AssetClass, Instrument

log = logging.getLogger(__name__)

FINAL_AFTER = 75
"""Seconds after its end at which a minute in the history is final; Alpaca corrects it for 30 s."""
COMPLETE_AFTER = 5
"""Seconds after its end at which a minute that was received live is complete."""
IN_HISTORY_AFTER = 30
"""Seconds after its end at which a minute is in the history."""
_REVISION_WINDOW = 3 * MINUTE
"""How far back, in seconds, Alpaca may still change bars."""
_MAX_CLOCK_OFFSET = 120.0
"""If Alpaca's time and the clock differ by more seconds, live bars are not used: the clock shows a past time."""
_DAY = 86400


class UncertainSpans:
    """Delivered spans that may have been corrected while no connection was open. Shared by all streams of a feed."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Adds a span and merges it with the spans that it touches."""
        if start >= end:
            return
        touching = [span for span in self.spans if span[0] <= end and start <= span[1]]
        apart = [span for span in self.spans if span not in touching]
        touching.append((start, end))
        self.spans = sorted([*apart, (min(s for s, _ in touching), max(e for _, e in touching))])

    def confirm(self, spans: Sequence[tuple[int, int]]) -> None:
        """Removes spans that have been fetched again. A span that has grown since stays."""
        self.spans = [span for span in self.spans if span not in spans]


class MinuteStream:
    """One stream of the feed."""

    def __init__(
        self,
        clock: Clock,
        rest: Rest,
        keys: tuple[str, str],
        urls: dict[AssetClass, str],
        instruments: Sequence[Instrument],
        since: int,
        uncertain: UncertainSpans,
    ) -> None:
        self._clock = clock
        self._rest = rest
        self._instruments = instruments
        self._since = -(-since // MINUTE) * MINUTE
        self._uncertain = uncertain
        self._minutes = Minutes()
        self._wake = asyncio.Event()
        self._recheck_at = math.inf
        self._readers: list[asyncio.Task[None]] = []
        self._sockets = [
            Socket(url, keys, {i.symbol: i for i in wanted}, self._on_row, self._on_bad)
            for asset_class, url in urls.items()
            if (wanted := [i for i in instruments if i.asset_class is asset_class])
        ]
        self._live_from: float = math.inf
        """All minutes that open from this time on are received live; infinity without connections."""
        self.complete_until = self._since

    @property
    def healthy(self) -> bool:
        """True if all connections are open and the first batch is complete."""
        connected = bool(self._readers) and not any(reader.done() for reader in self._readers)
        return connected and self.complete_until > self._since

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Yields batches until the caller closes it. Raises `FeedUnavailable` if a connection breaks."""
        try:
            if self._clock.moving:
                await self._listen()
            while True:
                await self._wait(min(self._due(), self._recheck_at))
                before = self.complete_until
                rechecked = await self._recheck() if self._clock.epoch() >= self._recheck_at else ()
                if self._clock.epoch() >= self._due():
                    await self._complete()
                bars = self._minutes.take(self.complete_until)
                if bars or self.complete_until > before:
                    yield Batch(bars, self.complete_until)
                self._uncertain.confirm(rechecked)  # after delivery, because a connection may break before
        finally:
            await self._close()

    async def _listen(self) -> None:
        """Open all connections, and set the minute from which on all bars are received live."""
        await _together(*(socket.open() for socket in self._sockets))
        self._readers = [asyncio.create_task(socket.read()) for socket in self._sockets]
        for reader in self._readers:
            reader.add_done_callback(lambda _: self._wake.set())
        # The clock may be behind Alpaca's by up to `COMPLETE_AFTER` seconds.
        live_from = _minute(self._clock.epoch() + COMPLETE_AFTER)
        self._live_from = live_from
        self._uncertain.add(max(self._since, live_from - _REVISION_WINDOW), live_from)
        self._recheck_at = live_from + FINAL_AFTER

    def _on_row(self, instrument: Instrument, row: Row, source: RowSource) -> None:
        time = row[0]
        if time > self._clock.epoch() + MINUTE:
            log.warning("dropped a bar of Alpaca's stream (%s): from the future", instrument)
        elif time >= self._since or source is RowSource.CORRECTION:  # bars before `_since` were final
            self._minutes.add(instrument, (row,), source)
            if time < self.complete_until and self._minutes.has_undelivered(self.complete_until):
                self._wake.set()

    def _on_bad(self) -> None:
        """Handles a bar that cannot be read: the minutes around now are fetched from the history later."""
        now = _minute(self._clock.epoch())
        self._uncertain.add(max(self._since, now - _REVISION_WINDOW), now + MINUTE)
        self._recheck_at = now + MINUTE + FINAL_AFTER

    def _delay(self) -> int:
        return IN_HISTORY_AFTER if self.complete_until < self._live_from else COMPLETE_AFTER

    def _due(self) -> float:
        """Returns the time at which the next minute will be complete."""
        return self.complete_until + MINUTE + self._delay()

    async def _complete(self) -> None:
        """Complete all minutes that can be complete by now, at most a day at a time."""
        delay = self._delay()
        until = min(_minute(self._clock.epoch() - delay), self.complete_until + _DAY)
        if self.complete_until < self._live_from:
            await self._fetch(self.complete_until, int(min(until, self._live_from)))
            if self._readers and self._rest.clock_offset > _MAX_CLOCK_OFFSET:
                log.info("the clock and Alpaca's differ by %.0f s: using its history only", self._rest.clock_offset)
                await self._stop_listening()
        await _together(*(socket.drain() for socket in self._sockets if self._readers))
        self._check()
        self.complete_until = until

    async def _fetch(self, start: int, end: int) -> None:
        for instrument, rows in (await self._rest.rows(self._instruments, start, end)).items():
            self._minutes.add(instrument, rows, RowSource.HISTORY)

    async def _recheck(self) -> Sequence[tuple[int, int]]:
        """Fetches the uncertain spans from the history again and returns them. Only changed rows are delivered."""
        self._recheck_at = math.inf
        spans = self._uncertain.spans
        for start, end in spans:
            await self._fetch(start, end)
        return spans

    async def _wait(self, due: float) -> None:
        """Wait until `due`, or until there is a correction to deliver, or raise the error of a connection."""
        if self._clock.epoch() < due and not self._wake.is_set():
            waiting = (
                asyncio.ensure_future(self._clock.sleep_until(due)),
                asyncio.ensure_future(self._wake.wait()),
            )
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _cancel(waiting)
        self._wake.clear()
        self._check()

    def _check(self) -> None:
        for reader in self._readers:
            if reader.done():
                reader.result()  # always raises: a reader ends only by an error

    async def _stop_listening(self) -> None:
        readers, self._readers = self._readers, []
        sockets, self._sockets = self._sockets, []
        self._live_from = self._recheck_at = math.inf
        try:
            await _cancel(readers)
        finally:
            await _together(*(socket.close() for socket in sockets))

    async def _close(self) -> None:
        if self._readers:
            self._uncertain.add(max(self._since, self.complete_until - _REVISION_WINDOW), self.complete_until)
            for bars in self._minutes.take(self.complete_until):  # rows that were not delivered
                for at in bars.time.tolist():
                    self._uncertain.add(at, at + MINUTE)
        await self._stop_listening()


async def _together(*steps: Coroutine[Any, Any, None]) -> None:
    """Runs the steps concurrently. If one fails, the others are cancelled before its error is raised."""
    tasks = [asyncio.ensure_future(step) for step in steps]
    try:
        if tasks:
            await asyncio.gather(*tasks)
    finally:
        await _cancel(tasks)


async def _cancel(tasks: Sequence[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _minute(epoch: float) -> int:
    return int(epoch // MINUTE) * MINUTE
