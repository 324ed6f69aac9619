"""`openbell watch`: the symbols of the watchlist."""

from __future__ import annotations

from typing import Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.desk.watchlist import WatchlistFile

watch = typer.Typer(help="List, add and remove the symbols of the watchlist.", no_args_is_help=True)
app.add_typer(watch, name="watch")
Symbols = Annotated[list[str], typer.Argument(metavar="SYMBOL…", help="The symbols: AAPL BTC/USD.")]


@watch.command("list")
def show() -> None:
    """Print the watched symbols, one per line."""
    with plain_errors():
        found = WatchlistFile(settings_for().watchlist_file).read()
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
    """Remove symbols from the watchlist. Stored bars are kept."""
    file = _file()
    with plain_errors():
        removed = file.remove(symbols)
    typer.echo(f"removed {', '.join(map(str, removed))}" if removed else "nothing to remove: none of these is watched")


def _file() -> WatchlistFile:
    settings = settings_for()
    if settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    return WatchlistFile(settings.watchlist_file)
