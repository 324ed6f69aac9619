"""`openbell watch`: the symbols of the watchlist."""

from __future__ import annotations

from typing import Annotated

import typer

from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.desk.desk import Desk
from openbell.desk.watchlist import WatchlistFile

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
def add(symbols: Symbols) -> None:
    """Add symbols at the end of the watchlist. A running collector follows it at once."""
    file = _file()
    with plain_errors():
        added = file.add(symbols)
    typer.echo(f"added {', '.join(map(str, added))}" if added else "nothing to add: all of these are watched already")


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
