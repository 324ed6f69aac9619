"""`openbell up` and `openbell collect`: run the whole desk with a live view, or only the collector."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, plain_errors, settings_for
from openbell.desk.desk import Desk
from openbell.market.clock import iso
from openbell.market.errors import Refused, UnknownSymbol
from openbell.market.instruments import parse

if TYPE_CHECKING:
    from openbell.desk.collector import Collector
    from openbell.feeds.port import Batch


Watch = Annotated[
    str | None,
    typer.Option("--watch", metavar="A,B", help="Add these symbols to the watchlist; a new home watches only these."),
]


@app.command("up")
def up(
    watch: Watch = None,
    trade: Trade = False,
    read_only: ReadOnly = False,
    as_of: AsOf = None,
    scenario: InScenario = None,
) -> None:
    """Run the desk on this machine: collect bars, fill paper orders, fire alerts, search strategies, show a live view.

    The search tries every strategy on the watched symbols in the background, and prints how far it is.

    Ctrl-C stops it without losing data.

    By default it uses a simulated market. Connect a client with: openbell mcp chart-signals

    \b
    Example:
      openbell up --watch AAPL,BTC/USD
    """  # noqa: D301 (click reads the backspace)
    desk = Desk(settings_for(as_of, read_only, trade, scenario))
    with plain_errors():
        if watch:
            _watch(desk, watch)
        if not desk.settings.read_only:
            desk.watchlist.create()
        _run(_up(desk))
    typer.echo("stopped; everything collected is stored", err=True)


@app.command("collect")
def collect(as_of: AsOf = None) -> None:
    """Collect bars of the watchlist until stopped. One collector works per home; others wait for its lease.

    Prints one JSON line per batch on standard output, after its bars are stored.
    """
    desk = Desk(settings_for(as_of))
    with plain_errors():
        if not desk.settings.read_only:
            desk.watchlist.create()
        _run(_collect(desk))


def _watch(desk: Desk, symbols: str) -> None:
    """Add symbols to the watchlist. Raises `UnknownSymbol` if the feed does not deliver one of them."""
    if desk.settings.read_only:
        raise Refused("this desk is read-only: --watch cannot change the watchlist")
    wanted = symbols.replace(",", " ").split()
    for instrument in map(parse, wanted):
        if desk.feed.source is not None and not desk.feed.supports(instrument):
            raise UnknownSymbol(instrument.symbol, f"the feed {desk.feed.name} does not deliver it")
    desk.watchlist.watch(wanted)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run until it ends or a signal stops it."""

    async def stoppable() -> None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, task.cancel)
        try:
            with suppress(asyncio.CancelledError):
                await task
        except BaseExceptionGroup as several:
            # The reader of our output has closed the pipe: stop without an error.
            if several.split(BrokenPipeError)[1] is not None:
                raise

    asyncio.run(stoppable())


async def _collect(desk: Desk) -> None:
    from openbell.desk.collector import Collector

    def report(batch: Batch, count: int) -> None:
        line = {"stored": count, "through": iso(batch.complete_until)}
        try:
            print(json.dumps(line), flush=True)  # noqa: T201 - this is the command's output
        except BrokenPipeError:
            # The reader has closed the pipe: collect without reports.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    async with desk:
        await Collector(desk.bars, desk.watchlist, desk.hub, on_stored=report).run()


async def _up(desk: Desk) -> None:
    from openbell.cli.view import print_changes, show_table
    from openbell.desk.collector import Collector
    from openbell.gateway.outbound import Outbound
    from openbell.gateway.webhooks.sender import WebhookSender

    collector: Collector = Collector(desk.bars, desk.watchlist, desk.hub)
    async with desk, asyncio.TaskGroup() as group:
        group.create_task(collector.run())
        if desk.trading.writes:
            group.create_task(desk.trading.engine.run())
            desk.strategies.start()
            group.create_task(WebhookSender(desk, Outbound(trusted=desk.settings.trusted_origins)).run())
        group.create_task((show_table if sys.stdout.isatty() else print_changes)(desk, collector))
