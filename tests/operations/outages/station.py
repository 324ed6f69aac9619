"""A desk as `openbell up` runs it, with collector and engine, on a clock that is moved by hand and with short time-outs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from openbell.desk.bars.collector import Collector
from openbell.desk.desk import Desk
from openbell.desk.events import leased_work
from openbell.desk.settings import Settings, load
from openbell.market.errors import OpenbellError
from openbell.protocol.dialects import Reply
from openbell.protocol.service import Runner
from openbell.servers import load as server_of
from openbell.stores import sqlite_connections
from tests.cli.in_process import command
from tests.clocks import HandClock
from tests.sessions import answered

START = 1_767_800_730.0
"""Half a minute after a minute has begun."""
SCALE = 0.4
"""All time-outs and pauses of the desk are this share of their defaults, so that their order stays the same."""
SYMBOL = "BTC/USD"
_DEFAULTS = Settings()
_SCALED = (
    "timeout",
    "pool_postgres_connect",
    "pool_postgres_timeout",
    "pool_influx_connect",
    "pool_influx_timeout",
)
_UNCACHED = ("cache_price", "cache_candles", "cache_decisions")
TIMEOUT = _DEFAULTS.timeout * SCALE


def shorten_pauses() -> None:
    """Scale the pauses that are no settings."""
    leased_work.PAUSE *= SCALE
    leased_work.LEASE_SECONDS *= SCALE
    sqlite_connections.BUSY_SECONDS *= SCALE


class Station:
    """One desk at a time, which can be closed and opened again."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.home = home
        self.clock = HandClock(START)
        given: dict[str, Any] = {"home": home, "feed": "sim", "trade": "1", "log": "error", **settings}
        given |= {name: getattr(_DEFAULTS, name) * SCALE for name in _SCALED} | dict.fromkeys(_UNCACHED, 0)
        self._given = {name.upper(): str(value) for name, value in given.items()}
        self.settings = load({f"OPENBELL_{name}": value for name, value in self._given.items()})
        home.mkdir(exist_ok=True)
        self.settings.watchlist_file.write_text(f"{SYMBOL}\n")
        self.desk: Desk
        self._runners: dict[str, Runner] = {}
        self._collecting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the desk; its collector and engine run in the background."""
        self.desk = Desk(self.settings)
        self.desk.clock = self.clock
        self._runners = {}
        collecting = Collector(self.desk.bars, self.desk.watchlist, self.desk.hub)
        self._collecting = asyncio.create_task(collecting.run())
        self.desk.trading.start()

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Calls inside have no time-out."""
        self.desk.settings = replace(self.settings, timeout=0.0)
        try:
            yield
        finally:
            self.desk.settings = self.settings

    async def close(self) -> None:
        """Stop the desk."""
        if self._collecting:
            self._collecting.cancel()
            with suppress(asyncio.CancelledError, OpenbellError):
                await self._collecting
        await self.desk.close()
        # A desk ends its process's threads with itself; here the next desk lives in the same loop.
        loop: Any = asyncio.get_running_loop()
        loop._default_executor, loop._executor_shutdown_called = None, False

    async def call(self, server: str, tool: str, **arguments: Any) -> Reply:
        """The reply to one call of a tool."""
        runner = self._runners.setdefault(server, Runner(server_of(server), self.desk))
        return await answered(runner, tool, arguments)

    async def ask(self, server: str, tool: str, **arguments: Any) -> Any:
        """The data of a call that succeeds."""
        reply = await self.call(server, tool, **arguments)
        assert not reply.is_error, f"{tool}: {reply.payload}"
        return reply.payload["data"] if "_metadata" in reply.payload else reply.payload

    async def command(self, *words: str) -> tuple[int, str]:
        """Run a command beside this desk; returns its exit code and all that it printed."""
        code, out, errors = await asyncio.to_thread(command, self.home, *words, **self._given)
        return code, out + errors

    async def adopt(self) -> None:
        """Accept a ledger that an older copy has replaced, as an operator does."""
        code, printed = await self.command("verify", "--adopt")
        assert code == 1, f"verify does not find that the ledger was cut: {printed}"

    async def until(self, condition: Callable[[], Any], what: str, patience: float = 30.0) -> None:
        """Ask until an awaited condition holds; raises `TimeoutError` if it does not in time."""
        try:
            async with asyncio.timeout(patience):
                while not await condition():
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise TimeoutError(what) from None
