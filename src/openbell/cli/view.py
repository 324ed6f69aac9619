"""The output of `openbell up`: a live table on a terminal, otherwise plain lines."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from openbell.cli.board import AccountPart, Movers, closed_heading
from openbell.cli.screen import Board, screen
from openbell.cli.terminal import raw
from openbell.desk.bars.collector import Collector
from openbell.desk.desk import Desk
from openbell.desk.events.hub import AlertFired, BarsClosed, OrderChanged, WatchlistChanged
from openbell.desk.events.supervision import WorkState, WorkStatus
from openbell.feeds.registry import feed_of
from openbell.market.clock import iso
from openbell.market.foreign_text import one_visible_line
from openbell.market.plural import counted
from openbell.trading.halt import Halt

if TYPE_CHECKING:
    from openbell.gateway.app import Gateway

CONNECT = "openbell mcp chart-signals"
_READY = frozenset({WorkState.WORKING, WorkState.IDLE, WorkState.STANDING_BY})
"""States of the collector in which reading all symbols does not compete with it."""
_SHOWN = (BarsClosed, OrderChanged, AlertFired, WatchlistChanged)
_REFRESH_SECONDS = 1.0
"""The longest time between two updates: the header shows the time."""
_SEARCH_SECONDS = 10.0
"""The shortest time between two lines on the progress of the search for strategies."""
_BADGES = {
    "simulated": ("SIMULATED MARKET: no price here is real", "black on yellow"),
    "imported": ("stored bars only: nothing is live", "black on white"),
    "replay": ("REPLAY of stored bars: nothing is live", "black on yellow"),
    "live": ("LIVE DATA", "white on green"),
}


async def print_changes(desk: Desk, collector: Collector, gateway: Gateway) -> None:
    """Print a line when the state changes, for logs and pipes."""
    console = Console(highlight=False, soft_wrap=True, markup=False)
    console.print(f"openbell: {_badge(desk)[0]} (feed {desk.settings.feed}), home {desk.settings.home}")
    console.print(f"openbell: connect an MCP client with: {_connect(gateway)}")
    seen, search = "", _SearchLines(desk)
    with desk.hub.listen(*_SHOWN) as changed:
        while True:
            line = _line(desk, collector)
            if line != seen:
                console.print(f"openbell: {one_visible_line(line)}")
                seen = line
            if line := search.next():
                console.print(f"openbell: strategies: {line}")
            await changed.wait(_REFRESH_SECONDS)


class _SearchLines:
    """The state of the search for strategies, as lines: at most one in 10 s while it runs, and one at its end."""

    def __init__(self, desk: Desk) -> None:
        self._strategies = desk.strategies
        self._shown = ""
        self._at = -inf

    def next(self) -> str:
        """Returns the line to print now; empty if there is none."""
        if not self._strategies.searches:
            return ""
        status, now = self._strategies.seeding.status, monotonic()
        line = f"{status}"
        if line == self._shown or (status.searching and now - self._at < _SEARCH_SECONDS):
            return ""
        self._shown, self._at = line, now
        return line


def _line(desk: Desk, collector: Collector) -> str:
    """Returns the state of collector and engine as one line."""
    status = collector.status
    line = f"{_state(desk, 'collector', status)}; {counted(status.watched, 'symbol')}; {_trading(desk)}"
    if status.through:
        line += f"; {counted(status.stored, 'bar')} stored, through {iso(status.through)}"
    if status.refused:
        line += f"; refused {dict(status.refused)}"
    return "; ".join([line, *_outages(desk)])


async def show_board(desk: Desk, collector: Collector, gateway: Gateway) -> None:
    """Show the live view on the whole screen, as large as the terminal is at the moment."""
    view = BoardView(desk, collector, gateway)
    # Another screen of the terminal: whatever its size becomes, each drawing covers all of it.
    console = Console(file=raw(sys.stdout))
    with (
        Live(view, console=console, screen=True, auto_refresh=False) as live,
        desk.hub.listen(*_SHOWN) as changed,
        _resizes(live),
    ):
        while True:
            await view.read()
            live.refresh()
            await changed.wait(_REFRESH_SECONDS)


@contextmanager
def _resizes(live: Live) -> Iterator[None]:
    """Draw at once when the terminal changes its size, on systems that report it."""
    if not hasattr(signal, "SIGWINCH"):
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, live.refresh)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


class BoardView:
    """The board of a desk, drawn in the size of the console."""

    def __init__(self, desk: Desk, collector: Collector, gateway: Gateway) -> None:
        self._desk, self._collector, self._gateway = desk, collector, gateway
        self._movers, self._account = Movers(desk), AccountPart(desk)
        badge, style = _badge(desk)
        self._board = Board(badge, style, "starting …", "")

    async def read(self) -> None:
        """Read the board anew."""
        desk = self._desk
        badge, style = _badge(desk)
        now = desk.clock.epoch()
        halted = desk.trading.halt_file.read()
        account, sections = await self._account.read()
        self._board = Board(
            badge,
            style,
            datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            f"feed {desk.settings.feed}  home {desk.settings.home}",
            account,
            (*_outages(desk), *((_halt(halted),) if halted else ())),
            await self._movers.read() if self._collector.status.state in _READY else (),
            closed_heading(now),
            sections,
            tuple(_status(desk, self._collector, self._gateway)),
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the board: one line of the screen after the other."""
        lines = screen(self._board, options.max_width, options.height or console.height)
        yield Text("\n", end="").join(lines)


def _status(desk: Desk, collector: Collector, gateway: Gateway) -> Iterator[str]:
    """Returns the state of the desk, the most important line first."""
    status = collector.status
    yield f"connect: {_connect(gateway)}"
    yield (
        f"collector: {_state(desk, 'collector', status)}; {counted(status.stored, 'bar')} stored, "
        f"{counted(status.reconnects, 'reconnect')}"
    )
    yield _trading(desk)
    if status.refused:
        yield "refused: " + ", ".join(f"{n} {why}" for why, n in status.refused.items())
    if desk.strategies.searches:
        yield f"strategies: {desk.strategies.seeding.status}"
    yield f"gateway: {gateway.metrics.summary()}, {counted(gateway.streams, 'stream')}"


def _badge(desk: Desk) -> tuple[str, str]:
    """Returns the description of the data and its style."""
    notice = feed_of(desk.settings.feed).notice
    return (notice, "black on yellow") if notice else _BADGES[desk.data]


def _connect(gateway: Gateway) -> str:
    """Returns how to connect a client, on this machine and over HTTP."""
    return f"{CONNECT}, or {gateway.base}/mcp with a token"


def _trading(desk: Desk) -> str:
    """Returns the state of the engine, and whether orders use real money."""
    money = "REAL MONEY" if desk.account == "live" else "paper"
    if not desk.trading.writes:
        why = "read-only" if desk.settings.read_only else "the clock is not the present; use --trade for a scenario"
        return f"engine: off ({why}); orders: {money}"
    engine, state = desk.trading.engine.status, _state(desk, "engine", desk.trading.engine.status)
    halted = desk.trading.halt_file.read()
    halt = f"; {_halt(halted)}" if halted else ""
    return f"engine: {state}; orders: {money}, {counted(engine.changes, 'change')} of orders and alerts so far{halt}"


def _state(desk: Desk, part: str, status: WorkStatus) -> str:
    """Returns the state of a part: what it reports itself, unless the last look at the desk knows that it fails."""
    last = desk.health.last
    return last.failing[part].text if last is not None and part in last.failing else f"{status}"


def _outages(desk: Desk) -> list[str]:
    """Returns a line for each part that fails and is not shown elsewhere, with its cause and since when."""
    found = desk.health.last.failing if desk.health.last is not None else {}
    elsewhere = {"collector", "engine"} | ({"webhooks"} if "records" in found else set())
    return [f"OUTAGE: {name}: {part}" for name, part in found.items() if name not in elsewhere]


def _halt(halt: Halt) -> str:
    return f"HALTED: {halt}" if halt.known else f"HALT {halt}"
