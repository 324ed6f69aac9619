"""`openbell import FILE…`: copy bars from price files into the store.

It prints one line for each series, however many files it came from, and each note once.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.cli.process_memory import collector_paused
from openbell.cli.terminal import progress
from openbell.market.clock import SystemClock, iso
from openbell.market.errors import BadBars, InputError, InvalidParameter, OpenbellError, Refused
from openbell.market.foreign_text import without_invisible
from openbell.market.instruments import parse
from openbell.market.plural import counted
from openbell.market.provenance import Adjustment
from openbell.market.timeframes import SHORT, Timeframe, name_of, parse_timeframe

if TYPE_CHECKING:
    from openbell.desk.importing import FileReader, FileSeries, ImportOptions
    from openbell.desk.settings import Settings
    from openbell.market.bars import Values
    from openbell.market.instruments import Instrument
    from openbell.market.series import Series
    from openbell.market.session_table import Times
    from openbell.stores.port import BarStore

_KEPT = 4_000_000
"""How many bars are kept in memory between the check of all files and their storing; other files are read again."""
_COMPARED = 5_000_000
"""How many bars of a series are compared between the files of a command."""
_NAMED = 10
_SKIP_HINT = "\n--skip-bad leaves out these rows and imports the others"
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
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out bad rows, list them, and import the others of the file.")
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
    skip_bad: SkipBad = False,
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

    If a row is invalid, the whole file is refused and the error names the line; with --skip-bad such rows are left out and
    listed. Several files are all checked before the first one is stored. Files of one symbol are one history, however it is
    split. Importing a file again changes nothing. If two files contain the same bar, the later import wins.
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for()
    with plain_errors():
        options = _options(symbol, timeframe, tz, date_format, adjusted)
        if by_name and symbol is not None:
            raise InvalidParameter("--symbol and --by-name exclude each other")
        if adjusted and adjustment is not None:
            raise InvalidParameter("--adjusted and --adjustment exclude each other: --adjusted stores prices as all")
        options = dataclasses.replace(options, by_name=by_name, adjustment=adjustment, skip_bad=skip_bad)
        from openbell.desk.importing import expand

        paths = expand(files)
        if check:
            _check(paths, options)
        else:
            _import(settings, paths, options, replace)


def _options(
    symbol: str | None, timeframe: str | None, tz: str | None, date_format: str | None, adjusted: bool
) -> ImportOptions:
    """Returns the options of the command line as values. Raises `InputError`."""
    instrument = parse(symbol) if symbol is not None else None
    length = parse_timeframe(timeframe, SHORT) if timeframe is not None else None
    with collector_paused():
        from openbell.desk.importing import ImportOptions
        from openbell.desk.importing.keys import zone_of
        from openbell.desk.importing.patterns import compiled

    if date_format is not None:
        compiled(date_format)
    return ImportOptions(instrument, length, zone_of(tz) if tz is not None else None, date_format, adjusted)


def _check(paths: list[Path], options: ImportOptions) -> None:
    """Print what is recognised in each file. Exits with 1 if a file is refused."""
    from openbell.desk.importing import FileReader

    refused = 0
    for path, found in _read_all(paths, FileReader(options, SystemClock().epoch())):
        if isinstance(found, InputError):
            hint = _SKIP_HINT * (isinstance(found, BadBars) and not options.skip_bad)
            typer.echo(f"openbell: {found.message}{hint}", err=True)
            refused += 1
            continue
        typer.echo(without_invisible(f"{path}: {found[0].format}, {len(found)} series"))
        for series in found:
            zone = "dates" if series.zone == "dates" else f"zone {series.zone}"
            bars = series.bars
            what = described(bars.series, len(bars), int(bars.time[0]), int(bars.time[-1]))
            typer.echo(f"  {what}, {zone}, {series.adjustment}")
        for note in notes_of(found):
            typer.echo(without_invisible(f"  note: {note}"))
    if refused:
        raise typer.Exit(1)


def _import(settings: Settings, paths: list[Path], options: ImportOptions, replace: bool) -> None:
    """Read all files, then store their bars and print what was stored."""
    if settings.read_only:
        raise Refused("OPENBELL_READ_ONLY is set: nothing can be imported")
    # Imported bars belong to the real market, whatever the feed is.
    real = dataclasses.replace(settings, feed="none")
    from openbell.desk.desk import Desk
    from openbell.desk.importing.storing import store

    stored: list[Path] = []
    place = real.store_backend.where()
    report = ImportReport(place)
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
                    report.add(some, [next(newest) for _ in some])
    except OSError as error:
        fail(f"cannot write to {place}: {error}{_so_far(stored, paths)}")
    except OpenbellError as error:
        error.message += _so_far(stored, paths) if stored else ""
        raise
    except KeyboardInterrupt:
        fail(f"interrupted{_so_far(stored, paths)}; run the same command again to store the rest", 130)
    finally:
        report.show(real)
    symbols = dict.fromkeys(series.instrument for series, _ in report.stored)
    if not settings.simulated:
        _join_watchlist(settings, symbols)
        return
    # On the watchlist of a simulated desk they would stay without a price.
    names = " ".join(map(str, [*symbols][:_NAMED])) + " …" * (len(symbols) > _NAMED)
    typer.echo(
        "openbell: OPENBELL_FEED is sim, which reads simulated bars only; "
        f"for {names} set another one, such as: export OPENBELL_FEED=none",
        err=True,
    )


def _join_watchlist(settings: Settings, imported: Iterable[Instrument]) -> None:
    """Add the symbols that the feed does not watch by default, so that they are watched on every feed."""
    from openbell.desk.bars.watchlist import WatchlistFile
    from openbell.feeds.registry import default_watchlist

    declared = default_watchlist(settings.feed, tuple)
    if added := WatchlistFile(settings.watchlist_file, lambda: declared).join(imported):
        names = ", ".join(map(str, added[:_NAMED])) + (f" and {len(added) - _NAMED:,} more" * (len(added) > _NAMED))
        typer.echo(f"openbell: added to the watchlist: {names} (openbell watch remove takes a symbol off it)", err=True)


def _checked(paths: list[Path], options: ImportOptions) -> Iterator[tuple[Path, list[FileSeries]]]:
    """Yields the series of each file, after all files were read once.

    Raises `InvalidParameter` if any is refused, or if two hold the same series with other adjustments.
    """
    from openbell.desk.importing import FileReader

    reader = FileReader(options, SystemClock().epoch())
    kept: dict[Path, list[FileSeries]] = {}
    errors: dict[Path, InputError] = {}
    held = 0
    adjusted: dict[Series, FileSeries] = {}
    sizes = {path: path.stat().st_size if path.is_file() else 0 for path in paths}
    with progress("reading", sum(sizes.values()), "bytes") as advance:
        for path, found in _read_all(paths, reader):
            if isinstance(found, InputError):
                errors[path] = found
                continue
            for series in found:
                _require_one_adjustment(adjusted.setdefault(series.bars.series, series), series)
            count = sum(len(series.bars) for series in found)
            if held + count <= _KEPT or not path.is_file():  # a pipe cannot be read again
                kept[path] = found
                held += count
            advance(sizes[path])
    refused = [errors[path] for path in paths if path in errors]
    skippable = not options.skip_bad and any(isinstance(error, BadBars) for error in refused)
    if len(refused) == 1 and len(paths) == 1:
        refused[0].message += _SKIP_HINT * skippable
        raise refused[0]
    if refused:
        messages = [error.message for error in refused[:_NAMED]]
        messages += [f"and {len(refused) - _NAMED:,} more files"] if len(refused) > _NAMED else []
        first = f"{len(refused):,} of {len(paths):,} files refused, so nothing was imported"
        raise InvalidParameter("\n".join([first, *messages]) + _SKIP_HINT * skippable)
    for path in paths:
        yield path, kept.pop(path) if path in kept else reader.again(path)


def _read_all(paths: Iterable[Path], reader: FileReader) -> Iterator[tuple[Path, list[FileSeries] | InputError]]:
    """Yields the series of each file, or why it is refused; last those whose timeframe only all files together show."""
    waiting: list[Path] = []
    for path in paths:
        try:
            if (found := reader.first(path)) is not None:
                yield path, found
            else:
                waiting.append(path)
        except InputError as error:
            yield path, error
    for path in waiting:
        try:
            yield path, reader.again(path)
        except InputError as error:
            yield path, error


def _require_one_adjustment(first: FileSeries, other: FileSeries) -> None:
    """Raises `InvalidParameter` if two files of a command hold one series with prices that cannot be mixed."""
    if first.adjustment is not other.adjustment:
        raise InvalidParameter(
            f"{first.file} holds {first.adjustment} prices of {first.bars.series} and {other.file} {other.adjustment} ones, "
            "so nothing was imported: a series has one adjustment; name it for all files with --adjustment, or import one"
        )


def _batches(
    files: Iterator[tuple[Path, list[FileSeries]]],
) -> Iterator[list[tuple[Path, list[FileSeries]]]]:
    """Yields files together until they hold enough series or bars to be stored at once."""
    batch: list[tuple[Path, list[FileSeries]]] = []
    series: set[Series] = set()
    bars = 0
    for path, found in files:
        if any(each.bars.timeframe is Timeframe.M1 for each in found):  # large: stored file by file
            if batch:
                yield batch
            yield [(path, found)]
            batch, series, bars = [], set(), 0
            continue
        batch.append((path, found))
        series.update(each.bars.series for each in found)
        bars += sum(len(each.bars) for each in found)
        if len(series) >= _BATCH_SERIES or bars >= _BATCH_BARS:
            yield batch
            batch, series, bars = [], set(), 0
    if batch:
        yield batch


def _so_far(stored: list[Path], paths: list[Path]) -> str:
    """Returns which files were stored as a whole."""
    if len(paths) == 1:
        return "; the months stored so far are complete" if not stored else ""
    names = ", ".join(str(path) for path in stored[-_NAMED:])
    return f"; stored: {len(stored):,} of {len(paths):,} files{f', the last {names}' if stored else ''}"


@dataclass(slots=True)
class _Stored:
    """The bars of one series that a command has stored."""

    bars: int = 0
    """Those of all files."""
    times: list[Times] = field(default_factory=list)
    closes: list[Values] = field(default_factory=list)
    """Of at most `_COMPARED` bars."""
    first: int = 2**62
    last: int = 0
    files: dict[str, None] = field(default_factory=dict)
    formats: dict[str, None] = field(default_factory=dict)

    def counts(self) -> tuple[int, int]:
        """Returns how many bars there are, and how many of them several files have with other closes."""
        if len(self.files) == 1 or self.bars > _COMPARED:
            return self.bars, 0
        import numpy as np

        times, closes = np.concatenate(self.times), np.concatenate(self.closes)
        order = np.lexsort((closes, times))
        again = np.diff(times[order]) == 0
        other = again & (np.diff(closes[order]) != 0)
        return len(times) - int(again.sum()), len(np.unique(times[order][1:][other]))


@dataclass(slots=True)
class ImportReport:
    """What a command has stored so far."""

    place: str
    stored: dict[tuple[Series, Adjustment], _Stored] = field(default_factory=dict)
    notes: dict[str, dict[str, None]] = field(default_factory=dict)
    """The files of each note."""
    before: dict[Series, int | None] = field(default_factory=dict)
    """The time of the latest bar of each series that was stored before the command."""
    first: dict[Series, int] = field(default_factory=dict)

    def add(self, found: Sequence[FileSeries], newest: Sequence[int | None]) -> None:
        """Add the series of one file, and the latest bar that was stored of each before it."""
        for series, latest in zip(found, newest, strict=True):
            key, times = series.bars.series, series.bars.time
            part = self.stored.setdefault((key, series.adjustment), _Stored())
            part.bars += len(times)
            if part.bars <= _COMPARED:
                part.times.append(times)
                part.closes.append(series.bars.close)
            part.first, part.last = min(part.first, int(times[0])), max(part.last, int(times[-1]))
            part.files[series.file] = part.formats[series.format] = None
            self.before.setdefault(key, latest)
            self.first[key] = min(self.first.get(key, part.first), part.first)
        for note in notes_of(found):
            self.notes.setdefault(note, {})[found[0].file] = None

    def show(self, settings: Settings) -> None:
        """Print what was stored, and on standard error what to know about it."""
        for (series, adjustment), part in self.stored.items():
            from_files = f", from {len(part.files):,} files" if len(part.files) > 1 else ""
            bars, others = part.counts()
            typer.echo(
                f"imported {described(series, bars, part.first, part.last)}{from_files}, into {self.place} "
                f"({', '.join(part.formats)}, {adjustment})"
            )
            if others:
                typer.echo(
                    f"openbell: several of these files have {counted(others, 'bar')} of {series} with different closes: the "
                    "last file of the command counts",
                    err=True,
                )
        late: dict[Instrument, float] = {}
        for series, latest in self.before.items():
            if latest is not None and self.first[series] <= latest:
                late[series.instrument] = max(latest, late.get(series.instrument, latest))
        if late:
            _note_late_bars(settings, late)
        for note, files in self.notes.items():
            first, more = next(iter(files)), len(files) - 1
            which = f"{first} and {counted(more, 'more file')}" if more else first
            typer.echo(without_invisible(f"openbell: {which}: {note}"), err=True)


def described(series: Series, count: int, first: int, last: int) -> str:
    """Returns the number of bars of a series and their time in words."""
    length = name_of(series.timeframe, SHORT)
    return f"{counted(count, 'bar')} of {series.instrument}, {length}, {iso(first)} to {iso(last)}"


def notes_of(found: Sequence[FileSeries]) -> list[str]:
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


def _note_late_bars(settings: Settings, newest: dict[Instrument, float]) -> None:
    """Print which orders and alerts the bars up to the `newest` of each instrument may no longer reach."""
    from openbell.desk.desk import Desk
    from openbell.desk.orders.order_wait_reasons import Waiting, waiting_for_bars

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
