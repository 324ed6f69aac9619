"""One streaming connection: opened, signed in, subscribed; then rows until it breaks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from openbell.feeds.alpaca import refusals
from openbell.feeds.alpaca.minutes import Told
from openbell.feeds.alpaca.wire import Malformed, Row, read_message, read_row
from openbell.market.errors import FeedUnavailable, SettingsError
from openbell.market.instruments import Instrument

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

log = logging.getLogger(__name__)

OPENING = 10.0
"""Seconds until a connection has to be subscribed."""
SILENCE = 10.0
"""Seconds between pings, and until each has to be answered."""
_CLOSING = 1.0
_SYMBOLS = 400
"""Symbols in one subscribe message, so that it stays small (about 8 kB)."""
_LARGEST = 8 * 2**20

_TOLD = {"b": Told.FIRST, "u": Told.CORRECTION}

# The library writes every frame to its debug log, and the first one we send holds the secret.
_frames = logging.getLogger(f"{__name__}.frames")
_frames.setLevel(logging.INFO)


class Socket:
    """Calls `on_row` for each bar and `on_bad` for each that cannot be used. Raises `FeedUnavailable` only."""

    def __init__(
        self,
        url: str,
        keys: tuple[str, str],
        instruments: Mapping[str, Instrument],
        on_row: Callable[[Instrument, Row, Told], None],
        on_bad: Callable[[], None],
    ) -> None:
        self._url = url
        self._keys = keys
        self._instruments = instruments
        self._on_row = on_row
        self._on_bad = on_bad
        self._connection: ClientConnection | None = None

    async def open(self) -> None:
        """Connect, sign in and subscribe."""
        try:
            from websockets.asyncio.client import connect
        except ImportError:
            raise SettingsError("Alpaca's stream needs a package more: pip install 'openbell[alpaca]'") from None
        async with _faults():
            async with asyncio.timeout(OPENING):
                self._connection = await connect(
                    self._url,
                    logger=_frames,
                    open_timeout=None,
                    ping_interval=SILENCE,
                    ping_timeout=SILENCE,
                    close_timeout=_CLOSING,
                    max_size=_LARGEST,
                )
                await self._expect("connected")
                await self._send(action="auth", key=self._keys[0], secret=self._keys[1])
                await self._expect("authenticated")
                await self._subscribe()

    async def read(self) -> None:
        """Take what comes until the connection breaks."""
        async with _faults():
            while True:
                await self._receive()

    async def settle(self) -> None:
        """Wait until everything that the vendor has sent by now is read: its pong comes behind it."""
        async with _faults():
            async with asyncio.timeout(SILENCE):
                await (await self._open_connection.ping())
            # Whoever reads was woken by the frames before the pong; this lets it finish before we go on.
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Say goodbye, shortly, and let go."""
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
        """The next message; bars in it are passed on, an error is raised."""
        items = read_message(await self._open_connection.recv())
        for item in items:
            kind = item.get("T")
            if kind == "error":
                raise refusals.by_code(item.get("code"), self._shown(item.get("msg")))
            if isinstance(kind, str) and (told := _TOLD.get(kind)):
                self._take(item, told)
        return items

    def _take(self, item: dict[str, Any], told: Told) -> None:
        symbol = item.get("S")
        instrument = self._instruments.get(symbol) if isinstance(symbol, str) else None
        try:
            row = read_row(item)
        except Malformed as why:
            log.warning("dropped a bar of Alpaca's stream (%s): %s", instrument or "no symbol", why)
            self._on_bad()
        else:
            if instrument:
                self._on_row(instrument, row, told)

    def _shown(self, message: object) -> str:
        shown = message[:200] if isinstance(message, str) else ""
        for secret in self._keys:
            shown = shown.replace(secret, "…")
        return shown


@asynccontextmanager
async def _faults() -> AsyncIterator[None]:
    """Whatever breaks on a connection is the feed being unavailable."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

    try:
        yield
    except Malformed as why:
        raise refusals.unread("stream", str(why)) from None
    except ConnectionClosed:
        raise FeedUnavailable("Alpaca's stream broke off") from None
    except InvalidStatus as error:
        raise FeedUnavailable(
            f"Alpaca's stream refuses the connection with HTTP {error.response.status_code}"
        ) from None
    except TimeoutError:
        raise FeedUnavailable("Alpaca's stream is silent: it did not answer in time") from None
    except (WebSocketException, OSError) as error:
        raise FeedUnavailable(
            f"Alpaca's stream cannot be reached ({type(error).__name__}): look at the network"
        ) from None
