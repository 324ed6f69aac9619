"""`openbell import FILE --symbol S`: copy bars from a file into the store."""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.market.clock import SystemClock, iso
from openbell.market.errors import InvalidParameter, OpenbellError, Refused, SourceConflict
from openbell.market.instruments import parse
from openbell.market.provenance import Origin, Source

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.market.bars import Bars
    from openbell.stores.port import BarStore

SOURCE = Source(Origin.IMPORTED, "import")
MINUTE_NAMES = ("1min", "1m")
_EVER = 2**40


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or Parquet file of minute bars.")],
    symbol: Annotated[str, typer.Option("--symbol", "-s", help="The symbol of the bars: AAPL, BTC/USD, EUR/USD.")],
    timeframe: Annotated[
        str | None,
        typer.Option(
            "--timeframe", "-t", help="The timeframe of the bars; only 1min. Needed if the minutes are far apart."
        ),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="First drop bars of other sources in the months of the file.")
    ] = False,
) -> None:
    """Import your own price history.

    The file has a header with the columns timestamp,open,high,low,close,volume in any order. A timestamp is the start of
    its minute: ISO 8601 (UTC if it has no zone), or seconds or milliseconds since 1970.

    \b
    Example, for a file aapl.csv that starts like this:
      timestamp,open,high,low,close,volume
      2025-09-19T13:30:00Z,237.10,237.55,236.90,237.42,182340
      2025-09-19T13:31:00Z,237.42,237.60,237.21,237.30,95120

    \b
      openbell import aapl.csv --symbol AAPL
      OPENBELL_FEED=none openbell call chart-signals get_signals '{"symbol": "AAPL", "timeframe": "5min"}'

    Larger bars are built from minutes: a file of hourly or daily bars, detected by the spacing of its rows, is refused.

    If a row is invalid, the whole file is refused and the error names the line. Importing a file again changes nothing.
    If two files contain the same minute, the later import wins.
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for()
    with plain_errors():
        _import(settings, file, symbol, timeframe, replace)


def _import(settings: Settings, file: Path, symbol: str, timeframe: str | None, replace: bool) -> None:
    """Read a file, store its bars and print what was stored."""
    if settings.read_only:
        raise Refused("OPENBELL_READ_ONLY is set: nothing can be imported")
    if timeframe is not None and timeframe not in MINUTE_NAMES:
        raise InvalidParameter(
            f"cannot import {timeframe!r} bars: the store keeps minute bars (1min) and builds larger ones from them"
        )
    instrument = parse(symbol)
    from openbell.desk.importing import read

    bars = read(file, instrument, SystemClock().epoch(), named=timeframe is not None)
    # Imported bars belong to the real market, whatever the feed is.
    real = dataclasses.replace(settings, feed="none")
    place = f"InfluxDB, database {real.influx_database}" if real.influx_url else str(real.bar_folder)
    try:
        newest = _store(real, bars, replace)
    except OSError as error:
        fail(f"cannot write to {place}: {error}")
    except KeyboardInterrupt:
        fail("interrupted; the months stored so far are complete: run the same command again to store the rest", 130)
    count = f"{len(bars):,} bar{'' if len(bars) == 1 else 's'}"
    typer.echo(f"imported {count} of {instrument}, {iso(bars.time[0])} to {iso(bars.time[-1])}, into {place}")
    if newest is not None and bars.time[0] <= newest:
        _note_late_bars(real, bars, newest)
    if settings.simulated:
        typer.echo(
            "openbell: OPENBELL_FEED is sim, which reads simulated bars only; "
            "to read imported bars, set OPENBELL_FEED to none, replay or a live feed",
            err=True,
        )


def _store(settings: Settings, bars: Bars, replace: bool) -> int | None:
    """Write month by month; returns the time of the latest bar that was stored before, None if there was none.

    Raises `SourceConflict` first if a month has bars of another source.
    """
    from openbell.desk.desk import Desk

    with closing(Desk(settings).store) as store:
        newest = store.tail(bars.series, 1, _EVER)
        if not replace and (others := store.conflicts(bars, SOURCE)):
            raise SourceConflict(
                f"the store has bars of another source: {', '.join(others[:10])}"
                f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}"
                f"; nothing was imported (--replace drops those months of {bars.instrument} first)"
            )
        _write_months(store, bars, replace)
    return int(newest.time[-1]) if len(newest) else None


def _note_late_bars(settings: Settings, bars: Bars, newest: int) -> None:
    """Print which orders and alerts the bars up to `newest` may no longer reach."""
    from openbell.desk.desk import Desk
    from openbell.desk.trading.late_bars import Waiting, waiting_for_bars

    async def count() -> Waiting:
        # Read-only: an import creates no records.
        async with Desk(dataclasses.replace(settings, read_only=True, as_of="", scenario="")) as desk:
            return await waiting_for_bars(desk.trading.records, bars.instrument, newest)

    try:
        waiting = asyncio.run(count())
    except OpenbellError as error:
        typer.echo(
            f"openbell: working orders and alerts on {bars.instrument} cannot be read: {error.message}", err=True
        )
        return
    if str(waiting):
        typer.echo(
            f"openbell: {waiting} on {bars.instrument} may already be past these bars: "
            f"bars up to {iso(newest)} that were stored late fill no order and fire no alert",
            err=True,
        )


def _write_months(store: BarStore, bars: Bars, replace: bool) -> None:
    from openbell.stores.periods import by_period, period_span
    from openbell.stores.port import Span

    months = list(by_period(bars, SOURCE))
    later = (period_span(month)[0] for month, _ in months[1:])
    # A month also covers empty months after it, so that coverage has no gap.
    bounds = pairwise([int(bars.time[0]), *later, int(bars.time[-1]) + bars.timeframe.seconds])
    with _progress(len(months)) as advance:
        for (_, part), (start, end) in zip(months, bounds, strict=True):
            store.write([part], SOURCE, covers=Span(start, end), replace=replace)
            advance()


@contextmanager
def _progress(months: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("storing months"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=months)
        yield lambda: shown.advance(task)
