"""`openbell up` and `openbell collect`: run the whole desk with a live view, or only the collector."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, plain_errors, service_settings
from openbell.cli.process_memory import freeze_now_and_later, tune_allocator
from openbell.cli.shutdown import at_forced_end, on_stop_of
from openbell.desk.desk import Desk
from openbell.desk.events.supervision import first_failure
from openbell.market.clock import iso
from openbell.market.errors import Refused, SettingsError, StoreError, UnknownSymbol
from openbell.market.instruments import parse

if TYPE_CHECKING:
    from socket import socket

    from openbell.desk.bars.collector import Collector
    from openbell.feeds.port import Batch
    from openbell.gateway.app import Gateway

log = logging.getLogger(__name__)

_AT_START = (StoreError, SettingsError)
"""Errors of the collector that end the command: it raises them only if it cannot begin."""
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
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option("--port", help="The port to listen on; 8742 by default.")] = None,
) -> None:
    """Run the desk on this machine, with a live view.

    It collects bars, fills paper orders, fires alerts, serves MCP over HTTP, and tries every strategy on the watched
    symbols in the background.

    Ctrl-C stops it without losing data.

    By default it uses a simulated market. Connect a client with: openbell mcp chart-signals, or over HTTP with a token
    (openbell token add) or OAuth (openbell passphrase); docs/gateway.md has the addresses.

    \b
    Example:
      openbell up --watch AAPL,BTC/USD
    """  # noqa: D301 (click reads the backspace)
    desk = Desk(service_settings(as_of, read_only, trade, scenario, host=host, port=port))
    with plain_errors():
        from openbell.gateway.serving import bind

        if watch:
            _watch(desk, watch)
        if not desk.settings.read_only:
            desk.watchlist.create()
        # A thread that computes gives way to the event loop after 0.5 ms instead of 5: a call waits for the loop several
        # times, and would wait as often for another principal's work.
        sys.setswitchinterval(0.0005)
        with bind(desk.settings) as listener:
            _run(desk, _up(desk, listener))
    through = desk.health.collector.through if desk.health.collector else 0
    stored = f"bars are stored up to {iso(through)}" if through else "this process has collected nothing"
    typer.echo(f"stopped; {stored}", err=True)


@app.command("collect")
def collect(as_of: AsOf = None) -> None:
    """Collect bars of the watchlist until stopped. One collector works per home; others wait for its lease.

    Prints one JSON line per batch on standard output, after its bars are stored.
    """
    desk = Desk(service_settings(as_of))
    with plain_errors():
        if not desk.settings.read_only:
            desk.watchlist.create()
        _run(desk, _collect(desk))


def _watch(desk: Desk, symbols: str) -> None:
    """Add symbols to the watchlist. Raises `UnknownSymbol` if the feed does not deliver one of them."""
    if desk.settings.read_only:
        raise Refused("this desk is read-only: --watch cannot change the watchlist")
    wanted = symbols.replace(",", " ").split()
    for instrument in map(parse, wanted):
        if desk.feed.source is not None and not desk.feed.supports(instrument):
            hint = desk.symbol_advice.hint_of_lists(instrument.symbol)
            raise UnknownSymbol(instrument.symbol, f"the feed {desk.feed.name} does not deliver it{hint}")
    desk.watchlist.watch(wanted)


def _run(desk: Desk, work: Coroutine[Any, Any, None]) -> None:
    """Run until it ends or a signal stops it."""

    async def stoppable() -> None:
        task = asyncio.ensure_future(work)
        on_stop_of(desk, task.cancel)
        # If the reader of our output has closed the pipe: stop without an error.
        with suppress(asyncio.CancelledError, BrokenPipeError):
            await task

    tune_allocator()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(stoppable())


def _new_loop() -> asyncio.AbstractEventLoop:
    """Returns an event loop: uvloop's where it is installed, because the gateway answers more calls with it."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _collect(desk: Desk) -> None:
    from openbell.desk.bars.collector import Collector

    def report(batch: Batch, count: int) -> None:
        line = {"stored": count, "through": iso(batch.complete_until)}
        try:
            print(json.dumps(line), flush=True)  # noqa: T201 - this is the command's output
        except OSError as error:
            # The reader has closed the pipe, or the disk is full: collect without reports.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if not isinstance(error, BrokenPipeError):
                log.warning("nothing more is reported on standard output: %s", error.strerror)

    async with desk:
        collector = Collector(desk.bars, desk.watchlist, desk.hub, on_stored=report)
        await desk.supervisor.background("collector", collector.run, collector.status, fatal=_AT_START)


async def _up(desk: Desk, listener: socket) -> None:
    from openbell.cli.view import show_board
    from openbell.desk.bars.collector import Collector
    from openbell.desk.orders.halts import HaltSync
    from openbell.gateway.outbound import Outbound
    from openbell.gateway.serving import serving
    from openbell.gateway.webhooks.sender import WebhookSender

    collector: Collector = Collector(desk.bars, desk.watchlist, desk.hub)
    desk.health.collector = collector.status
    async with desk, serving(desk, listener) as gateway:
        freeze_now_and_later()
        typer.echo(
            f"MCP over HTTP: {gateway.base}/mcp (chartgen), {gateway.base}/SERVER/mcp; docs/gateway.md", err=True
        )
        at_forced_end(gateway.withdraw)
        background, trading = desk.supervisor.background, desk.trading
        ending = [background("collector", collector.run, collector.status, fatal=_AT_START)]
        if trading.writes:
            ending.append(background("engine", trading.engine.run, trading.engine.status, fatal=(SettingsError,)))
            if not desk.settings.other_clock:
                background("halts", HaltSync(trading.halt_file, trading.records, trading.halts, desk.hub).run)
            desk.answers_early = True
            desk.strategies.start()
            sender = WebhookSender(desk, Outbound(trusted=desk.settings.trusted_origins))
            desk.health.sender = sender.status
            background("webhooks", sender.run, sender.status)
        background("health", desk.health.run)
        show = show_board if sys.stdout.isatty() else _lines
        ending.append(background("view", partial(show, desk, collector, gateway), fatal=(BrokenPipeError,)))
        await first_failure(*ending)


async def _lines(desk: Desk, collector: Collector, gateway: Gateway) -> None:
    """Print what changes, until it cannot be written: a full disk behind standard output must not stop a desk."""
    from openbell.cli.view import print_changes

    try:
        await print_changes(desk, collector, gateway)
    except BrokenPipeError:
        raise
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        log.warning("nothing more is shown on standard output: %s", error.strerror)
