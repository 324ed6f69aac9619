"""One streaming connection: connects, authenticates, subscribes, and receives rows until it breaks.

`Minutes` holds the received rows of each minute, and which of them have not been delivered yet.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from openbell.feeds.alpaca import refusals
from openbell.feeds.alpaca.wire import MalformedMessage, Row, read_message, read_row
from openbell.market.bars import Bars, make
from openbell.market.errors import FeedUnavailable, SettingsError
from openbell.market.instruments import Instrument
from openbell.market.timeframes import Timeframe

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection


log = logging.getLogger(__name__)

OPEN_TIMEOUT = 10.0
"""Seconds to connect, authenticate and subscribe."""
PING_TIMEOUT = 10.0
"""Seconds between two pings, and until each pong must arrive."""
_CLOSE_TIMEOUT = 1.0
_SYMBOLS = 400
"""Symbols in one subscribe message, so that it has at most about 8 kB."""
_LARGEST = 8 * 2**20

# websockets writes every frame to its debug log, and the first sent frame contains the secret key.
_frame_log = logging.getLogger(f"{__name__}.frames")
_KEPT = 3600
"""Seconds for which delivered rows are kept, to recognize duplicates."""


class RowSource(IntEnum):
    """The source of a row, in ascending order of precedence.

    The first bar of a minute on the stream is its oldest version, the history has that version or a later one, and a
    correction on the stream is the latest. So a first bar that arrives late or twice never replaces a correction.
    """

    FIRST = 1
    HISTORY = 2
    CORRECTION = 3


_SOURCES = {"b": RowSource.FIRST, "u": RowSource.CORRECTION}


_frame_log.setLevel(logging.INFO)


class Socket:
    """Calls `on_row` for each bar and `on_bad` for each bar that cannot be read. Raises `FeedUnavailable` only."""

    def __init__(
        self,
        url: str,
        keys: tuple[str, str],
        instruments: Mapping[str, Instrument],
        on_row: Callable[[Instrument, Row, RowSource], None],
        on_bad: Callable[[], None],
    ) -> None:
        self._url = url
        self._keys = keys
        self._instruments = instruments
        self._on_row = on_row
        self._on_bad = on_bad
        self._connection: ClientConnection | None = None

    async def open(self) -> None:
        """Connect, authenticate and subscribe."""
        try:
            from websockets.asyncio.client import connect
        except ImportError:
            raise SettingsError("Alpaca's stream needs another package: pip install 'openbell[alpaca]'") from None
        async with _as_feed_unavailable():
            async with asyncio.timeout(OPEN_TIMEOUT):
                self._connection = await connect(
                    self._url,
                    logger=_frame_log,
                    open_timeout=None,
                    ping_interval=PING_TIMEOUT,
                    ping_timeout=PING_TIMEOUT,
                    close_timeout=_CLOSE_TIMEOUT,
                    max_size=_LARGEST,
                )
                await self._expect("connected")
                await self._send(action="auth", key=self._keys[0], secret=self._keys[1])
                await self._expect("authenticated")
                await self._subscribe()

    async def read(self) -> None:
        """Receive messages until the connection breaks."""
        async with _as_feed_unavailable():
            while True:
                await self._receive()

    async def drain(self) -> None:
        """Wait until all messages that Alpaca has sent so far are read, by waiting for the pong of a ping."""
        async with _as_feed_unavailable():
            async with asyncio.timeout(PING_TIMEOUT):
                await (await self._open_connection.ping())
            # The reading task was woken by the frames before the pong; let it process them first.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Close the connection; abort it if the closing handshake takes longer than 1 s."""
        if connection := self._connection:
            try:
                await connection.close()
            finally:
                connection.transport.abort()

    @property
    def _open_connection(self) -> ClientConnection:
        assert self._connection is not None
        return self._connection

    async def _subscribe(self) -> None:
        symbols = list(self._instruments)
        for at in range(0, len(symbols), _SYMBOLS):
            some = symbols[at : at + _SYMBOLS]
            await self._send(action="subscribe", bars=some, updatedBars=some)
            await self._expect("subscription")

    async def _send(self, **message: Any) -> None:
        await self._open_connection.send(json.dumps(message))

    async def _expect(self, what: str) -> None:
        while not any(what in {item.get("msg"), item.get("T")} for item in await self._receive()):
            pass

    async def _receive(self) -> list[dict[str, Any]]:
        """Returns the next message. Passes its bars to `on_row`; raises `FeedUnavailable` if it is an error."""
        items = read_message(await self._open_connection.recv())
        for item in items:
            kind = item.get("T")
            if kind == "error":
                raise refusals.by_code(item.get("code"), self._without_keys(item.get("msg")))
            if isinstance(kind, str) and (source := _SOURCES.get(kind)):
                self._take(item, source)
        return items

    def _take(self, item: dict[str, Any], source: RowSource) -> None:
        symbol = item.get("S")
        instrument = self._instruments.get(symbol) if isinstance(symbol, str) else None
        try:
            row = read_row(item)
        except MalformedMessage as why:
            log.warning("dropped a bar of Alpaca's stream (%s): %s", instrument or "no symbol", why)
            self._on_bad()
        else:
            if instrument:
                self._on_row(instrument, row, source)

    def _without_keys(self, message: object) -> str:
        shown = message[:200] if isinstance(message, str) else ""
        for secret in self._keys:
            shown = shown.replace(secret, "…")
        return shown


@asynccontextmanager
async def _as_feed_unavailable() -> AsyncIterator[None]:
    """Converts all errors of a connection into `FeedUnavailable`."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

    try:
        yield
    except MalformedMessage as why:
        raise refusals.unreadable("stream", str(why)) from None
    except ConnectionClosed:
        raise FeedUnavailable("Alpaca's stream broke off") from None
    except InvalidStatus as error:
        raise FeedUnavailable(
            f"Alpaca's stream refuses the connection with HTTP {error.response.status_code}"
        ) from None
    except TimeoutError:
        raise FeedUnavailable("Alpaca's stream did not respond in time") from None
    except (WebSocketException, OSError) as error:
        raise FeedUnavailable(
            f"Alpaca's stream cannot be reached ({type(error).__name__}): check the network"
        ) from None


class Minutes:
    """The rows by instrument and minute; each version of a row is delivered once."""

    def __init__(self) -> None:
        self._rows: dict[Instrument, dict[int, tuple[RowSource, Row]]] = {}
        self._undelivered: dict[Instrument, set[int]] = {}

    def add(self, instrument: Instrument, rows: Iterable[Row], source: RowSource) -> None:
        """Adds rows, except for minutes with a row of higher precedence; among equal sources the last row is kept."""
        kept, undelivered = self._rows.setdefault(instrument, {}), self._undelivered.setdefault(instrument, set())
        for row in rows:
            time = row[0]
            earlier = kept.get(time)
            if earlier and earlier[0] > source:
                continue
            kept[time] = (source, row)
            if earlier is None or earlier[1] != row:
                undelivered.add(time)

    def has_undelivered(self, until: int) -> bool:
        """Returns True if a minute that opened before `until` has an undelivered row."""
        return any(at < until for times in self._undelivered.values() for at in times)

    def take(self, until: int) -> tuple[Bars, ...]:
        """Returns the undelivered rows of the minutes that opened before `until`, and counts them as delivered."""
        parts = []
        for instrument, undelivered in self._undelivered.items():
            kept = self._rows[instrument]
            if times := sorted(at for at in undelivered if at < until):
                columns = zip(*(kept[at][1] for at in times), strict=True)
                parts.append(make(instrument, Timeframe.M1, *columns))
                undelivered.difference_update(times)
            for at in [at for at in kept if at < until - _KEPT]:
                del kept[at]
        return tuple(parts)
