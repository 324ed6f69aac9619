"""The output of `openbell up`: a live table on a terminal, otherwise plain lines."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from openbell.desk.collector import Collector
from openbell.desk.desk import Desk
from openbell.desk.events import AlertFired, BarsClosed, OrderChanged, WatchlistChanged
from openbell.feeds.registry import feed_of
from openbell.market.clock import iso
from openbell.market.counting import counted
from openbell.market.errors import OpenbellError
from openbell.market.instruments import Instrument
from openbell.market.sessions import stock_phase
from openbell.market.timeframes import Timeframe

if TYPE_CHECKING:
    from openbell.gateway.app import Gateway

CONNECT = "openbell mcp chart-signals"
_HEADER_LINES = 15
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
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"openbell: {_badge(desk)[0]} (feed {desk.settings.feed}), home {desk.settings.home}")
    console.print(f"openbell: connect an MCP client with: {_connect(gateway)}")
    seen, search = "", _SearchLines(desk)
    with desk.hub.listen(*_SHOWN) as changed:
        while True:
            line = _line(desk, collector)
            if line != seen:
                console.print(f"openbell: {line}")
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
    line = f"{status.state}; {counted(status.watched, 'symbol')}; {_trading(desk)}"
    if status.through:
        line += f"; {counted(status.stored, 'bar')} stored, through {iso(status.through)}"
    if status.refused:
        line += f"; refused {dict(status.refused)}"
    return line


async def show_table(desk: Desk, collector: Collector, gateway: Gateway) -> None:
    """Show the live table."""
    with Live(Text("starting …"), refresh_per_second=4, screen=False) as live, desk.hub.listen(*_SHOWN) as changed:
        while True:
            room = live.console.height - _HEADER_LINES
            live.update(Group(_header(desk, collector, gateway), await _table(desk, collector, room)))
            await changed.wait(_REFRESH_SECONDS)


def _badge(desk: Desk) -> tuple[str, str]:
    """Returns the description of the data and its style."""
    notice = feed_of(desk.settings.feed).notice
    return (notice, "black on yellow") if notice else _BADGES[desk.data]


def _header(desk: Desk, collector: Collector, gateway: Gateway) -> Panel:
    status = collector.status
    badge, style = _badge(desk)
    now = desk.clock.epoch()
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    lines = [
        Text.assemble((f" {badge} ", style), f"  feed {desk.settings.feed}  home {desk.settings.home}"),
        Text(f"{moment}  stocks: {stock_phase(now)}  crypto: 24/7"),
        Text(
            f"collector: {status.state}; {counted(status.stored, 'bar')} stored, {counted(status.reconnects, 'reconnect')}"
        ),
        Text(_trading(desk)),
    ]
    if desk.strategies.searches:
        lines.append(Text(f"strategies: {desk.strategies.seeding.status}"))
    if status.refused:
        lines.append(Text("refused: " + ", ".join(f"{n} {why}" for why, n in status.refused.items()), style="red"))
    lines.append(Text(f"gateway: {gateway.metrics.summary()}, {counted(gateway.streams, 'stream')}"))
    lines.append(Text(f"connect an MCP client with: {_connect(gateway)}", style="bold"))
    return Panel(Group(*lines), title="Openbell", title_align="left")


def _connect(gateway: Gateway) -> str:
    """Returns how to connect a client, on this machine and over HTTP."""
    return f"{CONNECT}, or {gateway.base}/mcp (openbell token add)"


def _trading(desk: Desk) -> str:
    """Returns the state of the engine, and whether orders use real money."""
    money = "REAL MONEY" if desk.account == "live" else "paper"
    if not desk.trading.writes:
        why = "read-only" if desk.settings.read_only else "the clock is not the present; use --trade for a scenario"
        return f"engine: off ({why}); orders: {money}"
    engine = desk.trading.engine.status
    halted = desk.trading.halt_file.read()
    halt = f"; HALTED: {halted}" if halted else ""
    return f"engine: {engine.state}; orders: {money}, {counted(engine.changes, 'change')} of orders and alerts so far{halt}"


async def _table(desk: Desk, collector: Collector, room: int) -> Table:
    """Returns a table of as many rows as fit; the last row counts the symbols left out."""
    table = Table("symbol", expand=False)
    for name in ("price", "RSI 14", "bar"):
        table.add_column(name, justify="right")
    table.add_column("signals at 1min")
    if collector.status.state in {"collecting", "nothing to collect", "standing by"}:
        watched = desk.watchlist.read().instruments
        shown = watched if len(watched) <= room else watched[: max(0, room - 1)]
        for instrument in shown:
            table.add_row(*await _row(desk, instrument))
        if len(shown) < len(watched):
            table.add_row("…", "", "", "", f"{len(watched) - len(shown)} more: a taller window shows them")
    return table


async def _row(desk: Desk, instrument: Instrument) -> tuple[str, ...]:
    try:
        reading = await desk.signals.read(instrument, Timeframe.M1)
    except OpenbellError as error:
        return (instrument.symbol, "", "", "", error.message)
    if reading.signals is None:
        return (instrument.symbol, "", "", "", "not ready")
    last = reading.signals.last
    bar = datetime.fromtimestamp(last.time, UTC).strftime("%d %H:%M")
    return (instrument.symbol, f"{last.price:,}", f"{last.rsi:.1f}", bar, " ".join(reading.signals.crossings.true()))
