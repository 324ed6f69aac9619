"""`openbell watch`: the symbols of the watchlist."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.desk.bars.watchlist import WatchlistFile
from openbell.desk.desk import Desk
from openbell.market.errors import FeedUnavailable, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument, parse
from openbell.market.series import Series

watch = group("watch", "List, add and remove the symbols of the watchlist.")
Symbols = Annotated[list[str], typer.Argument(metavar="SYMBOL…", help="The symbols: AAPL BTC/USD.")]


@watch.command("list")
def show() -> None:
    """Print the watched symbols, one per line."""
    with plain_errors():
        found = Desk(settings_for()).watchlist.read()
    for instrument in found.instruments:
        typer.echo(str(instrument))
    for fault in found.faults:
        typer.echo(f"openbell: {fault}", err=True)


@watch.command("add")
def add(
    symbols: Symbols,
    force: Annotated[bool, typer.Option("--force", help="Add symbols that the feed does not have (yet).")] = False,
) -> None:
    """Add symbols at the end of the watchlist. A running collector follows it at once.

    Symbols of which neither the feed nor the store has bars are refused. If the feed does not respond, they are added, and a
    note says so.
    """
    file = _file()
    with plain_errors():
        new = [each for each in map(parse, symbols) if each not in file.read().instruments]
        unchecked = None if force or not new else asyncio.run(_check(new))
        added = file.add(symbols)
    typer.echo(f"added {', '.join(map(str, added))}" if added else "nothing to add: all of these are watched already")
    if unchecked:
        typer.echo(f"openbell: it could not be checked whether the feed has them: {unchecked}", err=True)


async def _check(instruments: Sequence[Instrument]) -> str | None:
    """Raise `UnknownSymbol` if neither the feed nor the store has bars of one; returns why some could not be checked."""
    unchecked = None
    async with Desk(settings_for()) as desk:
        for instrument in instruments:
            try:
                await _find(desk, instrument)
            except UnknownSymbol as error:
                await desk.symbol_advice.add_to(error)
                error.message += " (--force adds it all the same)"
                raise
            except (FeedUnavailable, StoreError) as error:
                unchecked = error.message
    return unchecked


async def _find(desk: Desk, instrument: Instrument) -> None:
    """Raise `UnknownSymbol` if there are no bars of an instrument, `FeedUnavailable` or `StoreError` if that is unknown."""
    await desk.bars.find(str(instrument))
    if desk.data == "live" and desk.feed.supports(instrument):
        # Before a vendor is asked, its feed supports every symbol of its asset classes.
        week_ago = int(desk.clock.epoch()) - 7 * 86400
        try:
            await desk.feed.history(Series(instrument), week_ago, week_ago + 3600)
        except UnknownSymbol:
            if not await desk.threads.run(desk.bars.has_stored, instrument):
                raise


@watch.command("remove")
def remove(symbols: Symbols) -> None:
    """Remove symbols from the watchlist. Stored bars are kept, and an import does not add them again."""
    file = _file()
    with plain_errors():
        removed = file.remove(symbols)
    typer.echo(f"removed {', '.join(map(str, removed))}" if removed else "nothing to remove: none of these is watched")


def _file() -> WatchlistFile:
    settings = settings_for()
    if settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    return Desk(settings).watchlist
