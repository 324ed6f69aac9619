"""`openbell up` and `openbell collect`: the collector, with a live view of the desk or one line per stored batch."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, said_plainly, settings_for
from openbell.desk.desk import Desk
from openbell.market.clock import iso

if TYPE_CHECKING:
    from openbell.desk.collector import Collector
    from openbell.feeds.port import Batch


@app.command("up")
def up(trade: Trade = False, read_only: ReadOnly = False, as_of: AsOf = None, scenario: InScenario = None) -> None:
    """Run the desk on this machine: collect bars, fill paper orders, fire alerts, and show a live view.

    Ctrl-C stops it; nothing is lost.

    Without settings it runs on a simulated market. Connect a client with: openbell mcp chart-signals
    """
    desk = Desk(settings_for(as_of, read_only, trade, scenario))
    with said_plainly():
        if not desk.settings.read_only:
            desk.watchlist.create()
        _run(_up(desk))
    typer.echo("stopped; everything collected is stored", err=True)


@app.command("collect")
def collect(as_of: AsOf = None) -> None:
    """Collect bars of the watchlist until stopped; one collector works per home, others stand by.

    Prints one JSON line per batch on standard output, after its bars are safely stored.
    """
    desk = Desk(settings_for(as_of))
    with said_plainly():
        desk.watchlist.create()
        _run(_collect(desk))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run until done or told to stop, and leave quietly."""

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
            # Whoever read what we print has left: that is the end, not an error.
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
            # Whoever read the reports has left; the work goes on.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    async with desk:
        await Collector(desk.bars, desk.watchlist, desk.hub, on_stored=report).run()


async def _up(desk: Desk) -> None:
    from openbell.cli.view import show, tell
    from openbell.desk.collector import Collector

    collector: Collector = Collector(desk.bars, desk.watchlist, desk.hub)
    async with desk, asyncio.TaskGroup() as group:
        group.create_task(collector.run())
        if desk.trading.writes:
            group.create_task(desk.trading.engine.run())
        group.create_task((show if sys.stdout.isatty() else tell)(desk, collector))
