"""`openbell import FILE…`: copy bars from price files into the store."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.cli.entry import collector_paused
from openbell.cli.progress import progress
from openbell.market.clock import SystemClock, iso
from openbell.market.counting import counted
from openbell.market.errors import InputError, InvalidParameter, OpenbellError, Refused
from openbell.market.instruments import parse
from openbell.market.provenance import Adjustment
from openbell.market.timeframes import SHORT, Timeframe, name_of, parse_timeframe

if TYPE_CHECKING:
    from openbell.desk.importing import FileSeries, Options
    from openbell.desk.settings import Settings
    from openbell.market.instruments import Instrument
    from openbell.stores.port import BarStore

_KEPT = 4_000_000
"""How many bars are kept in memory between the check of all files and their storing; other files are read again."""
_NAMED = 10
_BATCH_SERIES, _BATCH_BARS = 64, 500_000
"""How many series or bars are stored at once."""


Files = Annotated[list[str], typer.Argument(metavar="FILE", help="Price files, also .gz and .zip, or globs.")]
SymbolOf = Annotated[
    str | None,
    typer.Option("--symbol", "-s", help="The symbol, if the file does not name it: AAPL, BTC/USD, EUR/USD."),
]
ByName = Annotated[
    bool, typer.Option("--by-name", help="The name of each file is its symbol, as in AAPL.csv or aapl.us.txt.")
]
TimeframeOf = Annotated[
    str | None,
    typer.Option("--timeframe", "-t", help="The timeframe, if the spacing of the rows does not show it: 1m … 1w."),
]
ZoneOf = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        help="The zone of times without one: America/New_York, UTC+2, or America/New_York+7 for the time of many MetaTrader "
        "servers, 7 hours ahead of New York. Default: UTC.",
    ),
]
DateFormat = Annotated[
    str | None,
    typer.Option("--date-format", metavar="FORMAT", help="The format of times, as for strptime: '%d/%m/%Y %H:%M'."),
]
Adjusted = Annotated[
    bool, typer.Option("--adjusted", help="Scale prices by the column of adjusted closes (Adj Close).")
]
AdjustmentOf = Annotated[
    Adjustment | None,
    typer.Option("--adjustment", help="What stock prices are adjusted for, if not as the format's usually are."),
]
Check = Annotated[bool, typer.Option("--check", help="Show what was recognised and store nothing.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="First drop bars of other sources from the first to the last bar of the file.")
]


@app.command("import")
def import_files(
    files: Files,
    symbol: SymbolOf = None,
    by_name: ByName = False,
    timeframe: TimeframeOf = None,
    tz: ZoneOf = None,
    date_format: DateFormat = None,
    adjusted: Adjusted = False,
    adjustment: AdjustmentOf = None,
    check: Check = False,
    replace: Replace = False,
) -> None:
    """Import your own price history.

    Recognises files of Yahoo, yfinance, Stooq, TradingView, Binance, Kraken, Alpha Vantage, Polygon, MetaTrader, Dukascopy,
    HistData, freqtrade, Interactive Brokers and pandas, European exports, and any table with the columns
    timestamp,open,high,low,close,volume. The timeframe is detected from the spacing of the rows: 1m to 1w.

    \b
    Example, for a file aapl.csv that starts like this:
      timestamp,open,high,low,close,volume
      2025-09-19T13:30:00Z,237.10,237.55,236.90,237.42,182340
      2025-09-19T13:31:00Z,237.42,237.60,237.21,237.30,95120

    \b
      openbell import aapl.csv --symbol AAPL --check
      openbell import aapl.csv --symbol AAPL
      OPENBELL_FEED=none openbell call chart-signals get_signals '{"symbol": "AAPL", "timeframe": "5min"}'

    \b
    More examples:
      openbell import 'BTCUSDT-1m-*.zip'
      openbell import 'stocks/*.csv' --by-name
      openbell import intraday.csv --symbol MSFT --tz America/New_York
      openbell import EURUSD60.csv --tz America/New_York+7
      openbell import yahoo.csv --symbol AAPL --adjusted

    If a row is invalid, the whole file is refused and the error names the line. Several files are all checked before the
    first one is stored. Importing a file again changes nothing. If two files contain the same bar, the later import wins.
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for()
    with plain_errors():
        options = _options(symbol, timeframe, tz, date_format, adjusted)
        if by_name and symbol is not None:
            raise InvalidParameter("--symbol and --by-name exclude each other")
        if adjusted and adjustment is not None:
            raise InvalidParameter("--adjusted and --adjustment exclude each other: --adjusted stores prices as all")
        options = dataclasses.replace(options, by_name=by_name, adjustment=adjustment)
        from openbell.desk.importing import expand

        paths = expand(files)
        if check:
            _check(paths, options)
        else:
            _import(settings, paths, options, replace)


def _options(
    symbol: str | None, timeframe: str | None, tz: str | None, date_format: str | None, adjusted: bool
) -> Options:
    """Returns the options of the command line as values. Raises `InputError`."""
    instrument = parse(symbol) if symbol is not None else None
    length = parse_timeframe(timeframe, SHORT) if timeframe is not None else None
    with collector_paused():
        from openbell.desk.importing import Options
        from openbell.desk.importing.patterns import compiled
        from openbell.desk.importing.zones import zone_of

    if date_format is not None:
        compiled(date_format)
    return Options(instrument, length, zone_of(tz) if tz is not None else None, date_format, adjusted)


def _check(paths: list[Path], options: Options) -> None:
    """Print what is recognised in each file. Exits with 1 if a file is refused."""
    from openbell.desk.importing import read

    refused = 0
    for path in paths:
        try:
            found = read(path, options, SystemClock().epoch())
        except InputError as error:
            typer.echo(f"openbell: {error.message}", err=True)
            refused += 1
            continue
        typer.echo(f"{path}: {found[0].format}, {len(found)} series")
        for series in found:
            zone = "dates" if series.zone == "dates" else f"zone {series.zone}"
            typer.echo(f"  {_described(series)}, {zone}, {series.adjustment}")
        for note in _notes(found):
            typer.echo(f"  note: {note}")
    if refused:
        raise typer.Exit(1)


def _described(series: FileSeries) -> str:
    bars = series.bars
    length = name_of(bars.timeframe, SHORT)
    return f"{counted(len(bars), 'bar')} of {bars.instrument}, {length}, {iso(bars.time[0])} to {iso(bars.time[-1])}"


def _notes(found: Sequence[FileSeries]) -> list[str]:
    """Returns the notes on a file; one that does not hold for all of its series names theirs."""
    symbols: dict[str, list[str]] = {}
    for series in found:
        for note in series.notes:
            symbols.setdefault(note, []).append(str(series.bars.instrument))
    return [
        note
        if len(names) == len(found)
        else f"{', '.join(names[:_NAMED])}{' …' if len(names) > _NAMED else ''}: {note}"
        for note, names in symbols.items()
    ]


def _import(settings: Settings, paths: list[Path], options: Options, replace: bool) -> None:
    """Read all files, then store their bars and print what was stored."""
    if settings.read_only:
        raise Refused("OPENBELL_READ_ONLY is set: nothing can be imported")
    # Imported bars belong to the real market, whatever the feed is.
    real = dataclasses.replace(settings, feed="none")
    place = f"InfluxDB, database {real.influx_database}" if real.influx_url else str(real.bar_folder)
    from openbell.desk.desk import Desk
    from openbell.desk.importing.storing import store

    stored: list[Path] = []
    joining: dict[Instrument, None] = {}
    try:
        with ExitStack() as stack:
            bar_store: BarStore | None = None
            for batch in _batches(_checked(paths, options)):
                # Only now: a file that is refused creates no home.
                bar_store = bar_store or stack.enter_context(closing(Desk(real).store))
                found = [series for _, some in batch for series in some]
                with progress("storing", sum(len(series.bars) for series in found), "bars") as advance:
                    newest = iter(store(bar_store, found, replace, advance))
                for path, some in batch:
                    stored.append(path)
                    joining.update(dict.fromkeys(series.bars.instrument for series in some))
                    _report(real, some, [next(newest) for _ in some], place)
    except OSError as error:
        fail(f"cannot write to {place}: {error}{_so_far(stored, paths)}")
    except OpenbellError as error:
        error.message += _so_far(stored, paths) if stored else ""
        raise
    except KeyboardInterrupt:
        fail(f"interrupted{_so_far(stored, paths)}; run the same command again to store the rest", 130)
    _join_watchlist(settings, joining)
    if settings.simulated:
        typer.echo(
            "openbell: OPENBELL_FEED is sim, which reads simulated bars only; "
            "to read imported bars, set OPENBELL_FEED to none, replay or a live feed",
            err=True,
        )


def _join_watchlist(settings: Settings, imported: Iterable[Instrument]) -> None:
    """Add the symbols that the feed does not watch by default, so that they are watched on every feed."""
    from openbell.desk.watchlist import WatchlistFile
    from openbell.feeds.registry import default_watchlist

    declared = default_watchlist(settings.feed, tuple)
    if added := WatchlistFile(settings.watchlist_file, lambda: declared).join(imported):
        names = ", ".join(map(str, added[:_NAMED])) + (f" and {len(added) - _NAMED:,} more" * (len(added) > _NAMED))
        typer.echo(f"openbell: added to the watchlist: {names} (openbell watch remove takes a symbol off it)", err=True)


def _checked(paths: list[Path], options: Options) -> Iterator[tuple[Path, list[FileSeries]]]:
    """Yields the series of each file, after all files were read once. Raises `InvalidParameter` if any is refused."""
    from openbell.desk.importing import read

    now = SystemClock().epoch()
    kept: dict[Path, list[FileSeries]] = {}
    refused, held = [], 0
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    with progress("reading", sum(sizes), "bytes") as advance:
        for path, size in zip(paths, sizes, strict=True):
            try:
                found = read(path, options, now)
            except InputError as error:
                refused.append(error)
                continue
            count = sum(len(series.bars) for series in found)
            if held + count <= _KEPT or not path.is_file():  # a pipe cannot be read again
                kept[path] = found
                held += count
            advance(size)
    if len(refused) == 1 and len(paths) == 1:
        raise refused[0]
    if refused:
        messages = [error.message for error in refused[:_NAMED]]
        messages += [f"and {len(refused) - _NAMED:,} more files"] if len(refused) > _NAMED else []
        first = f"{len(refused):,} of {len(paths):,} files refused, so nothing was imported"
        raise InvalidParameter("\n".join([first, *messages]))
    for path in paths:
        yield path, kept.pop(path) if path in kept else read(path, options, now)


def _batches(
    files: Iterator[tuple[Path, list[FileSeries]]],
) -> Iterator[list[tuple[Path, list[FileSeries]]]]:
    """Yields files together until they hold enough series or bars to be stored at once."""
    batch: list[tuple[Path, list[FileSeries]]] = []
    series = bars = 0
    for path, found in files:
        if any(each.bars.timeframe is Timeframe.M1 for each in found):  # large: stored file by file
            if batch:
                yield batch
            yield [(path, found)]
            batch, series, bars = [], 0, 0
            continue
        batch.append((path, found))
        series += len(found)
        bars += sum(len(each.bars) for each in found)
        if series >= _BATCH_SERIES or bars >= _BATCH_BARS:
            yield batch
            batch, series, bars = [], 0, 0
    if batch:
        yield batch


def _so_far(stored: list[Path], paths: list[Path]) -> str:
    """Returns which files were stored as a whole."""
    if len(paths) == 1:
        return "; the months stored so far are complete" if not stored else ""
    names = ", ".join(str(path) for path in stored[-_NAMED:])
    return f"; stored: {len(stored):,} of {len(paths):,} files{f', the last {names}' if stored else ''}"


def _report(settings: Settings, found: list[FileSeries], newest: list[int | None], place: str) -> None:
    """Print what was stored, and the notes on standard error."""
    late: dict[Instrument, float] = {}
    for series, latest in zip(found, newest, strict=True):
        typer.echo(f"imported {_described(series)}, into {place} ({series.format}, {series.adjustment})")
        if latest is not None and series.bars.time[0] <= latest:
            late[series.bars.instrument] = max(latest, late.get(series.bars.instrument, latest))
    if late:
        _note_late_bars(settings, late)
    for note in _notes(found):
        typer.echo(f"openbell: {found[0].file}: {note}", err=True)


def _note_late_bars(settings: Settings, newest: dict[Instrument, float]) -> None:
    """Print which orders and alerts the bars up to the `newest` of each instrument may no longer reach."""
    from openbell.desk.desk import Desk
    from openbell.desk.trading.late_bars import Waiting, waiting_for_bars

    async def count() -> dict[Instrument, Waiting]:
        # Read-only: an import creates no records.
        async with Desk(dataclasses.replace(settings, read_only=True, as_of="", scenario="")) as desk:
            return await waiting_for_bars(desk.trading.records, newest)

    try:
        found = asyncio.run(count())
    except OpenbellError as error:
        names = ", ".join(map(str, [*newest][:_NAMED])) + (" …" if len(newest) > _NAMED else "")
        typer.echo(f"openbell: working orders and alerts on {names} cannot be read: {error.message}", err=True)
        return
    for instrument, waiting in found.items():
        if str(waiting):
            typer.echo(
                f"openbell: {waiting} on {instrument} may already be past these bars: "
                f"bars up to {iso(newest[instrument])} that were stored late fill no order and fire no alert",
                err=True,
            )
