"""However a file is split into files and commands, with or without overlaps and in any order, the home is the same."""

from __future__ import annotations

import asyncio
import tempfile
import zipfile
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from openbell.desk.bars.service import BarService
from openbell.desk.importing import FileReader, ImportOptions
from openbell.desk.importing.storing import store
from openbell.feeds.none.feed import NoFeed
from openbell.market.clock import FixedClock
from openbell.market.series import Series
from openbell.market.series import series_of as series_named
from openbell.market.series_plan import buckets
from openbell.market.timeframes import Timeframe
from openbell.stores.parquet.store import ParquetStore
from openbell.stores.port import Span
from tests.desk.importing.files import NOW, Files, at

EVER = 2**40
Rows = tuple[int, ...]
STARTS = {"AAPL 1d": "2025-06-02", "AAPL": "2025-09-15T13:30", "BTC/USD 1h": "2025-09-01", "EUR/USD 1d": "2025-06-02"}
SERVED = {
    "AAPL 1d": ("D1", "W1", "MONTH"),
    "AAPL": ("M1", "M5", "H1", "D1", "W1"),
    "BTC/USD 1h": ("H1", "H4", "D1", "W1"),
    "EUR/USD 1d": ("D1", "W1", "MONTH"),
}


def whole(count: int) -> Rows:
    return tuple(range(count))


@dataclass(frozen=True)
class Split:
    """The bars of a series, by their number, and the files of each command."""

    name: str
    rows: Rows
    commands: tuple[tuple[Rows, ...], ...]
    zipped: bool = False
    """Whether the files of a command are the members of one archive."""


@st.composite
def plain_splits(draw: st.DrawFn) -> Split:
    """Files of bars that follow each other, of which some may hold a single one, in one command."""
    name = draw(st.sampled_from(sorted(STARTS)))
    rows = whole(draw(st.integers(14, 60)))
    cuts = sorted(
        draw(st.sets(st.integers(1, len(rows) - 1), max_size=draw(st.sampled_from([2, 60])))) | {0, len(rows)}
    )
    files = [rows[low:high] for low, high in pairwise(cuts)]
    return Split(name, rows, (tuple(draw(st.permutations(files))),), draw(st.booleans()))


@st.composite
def splits(draw: st.DrawFn) -> Split:
    name = draw(st.sampled_from(sorted(STARTS)))
    # Runs of bars and holes, of which some are just as long as is taken for silence.
    lengths = st.integers(1, 60 if name != "AAPL" else 900)
    holes = st.sampled_from([1, 2, 3, 4, 5, 39, 40, 41, 390, 1499, 1500, 1501, 2000])
    at_row, rows = 0, []
    for _ in range(draw(st.integers(1, 4))):
        count, step = draw(lengths), draw(st.sampled_from([1, 1, 1, 7]))
        rows += list(range(at_row, at_row + count, step))
        at_row = rows[-1] + 1 + draw(holes)
    cuts = sorted(draw(st.sets(st.integers(0, len(rows)), max_size=5)) | {0, len(rows)})
    files = [rows[low:high] for low, high in pairwise(cuts)]
    for low, high in draw(st.lists(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows))), max_size=2)):
        files.append(rows[min(low, high) : max(low, high)])  # overlaps the others
    if draw(st.booleans()):  # every second bar in another file
        widest = max(files, key=len)
        files.remove(widest)
        files += [widest[::2], widest[1::2]]
    shuffled = draw(st.permutations([tuple(file) for file in files if file]))
    ends = sorted(draw(st.sets(st.integers(0, len(shuffled)), max_size=3)) | {0, len(shuffled)})
    commands = tuple(tuple(shuffled[low:high]) for low, high in pairwise(ends))
    return Split(name, tuple(rows), commands, draw(st.booleans()))


def times_of(name: str) -> list[int]:
    """The times of all bars of a series before the test's present; minutes of stocks in regular hours only."""
    series, start = series_named(name), at(STARTS[name])
    if name != "AAPL":
        return [int(each) for each in buckets(series.instrument, series.timeframe, start, int(NOW))[0]]
    opens, closes = buckets(series.instrument, Timeframe.D1, start, int(NOW))
    return [time for opened, close in zip(opens, closes, strict=True) for time in range(opened, close, 60)]


def home_after(
    name: str, commands: tuple[tuple[Rows, ...], ...], *, zipped: bool = False, named: bool = True
) -> tuple[object, ...]:
    """Imports the files of each command; returns the coverage, the stored bars and all bars that a desk serves of them."""
    series = series_named(name)
    times = times_of(name)
    with tempfile.TemporaryDirectory() as folder, closing(ParquetStore(Path(folder) / "data")) as bars:
        files = Files(Path(folder))
        for number, command in enumerate(commands):
            paths: list[Path] = []
            for at_file, rows in enumerate(command):
                # Volumes and prices depend on the time alone: files that overlap agree.
                kept = [times[row] for row in rows if row < len(times)]
                lines = [f"{time},10,{12 + time // 60 % 5},9,{10 + time // 60 % 3},{time % 1000}" for time in kept]
                if lines:
                    text = "\n".join(["timestamp,open,high,low,close,volume", *lines, ""])
                    paths.append(files.write(text, f"{number}-{at_file}.csv"))
            if zipped and paths:
                paths = [packed(paths, Path(folder) / f"{number}.zip")]
            reader = FileReader(ImportOptions(series.instrument, series.timeframe if named else None), NOW)
            first = [reader.first(path) for path in paths]
            read = (reader.again(path) if each is None else each for path, each in zip(paths, first, strict=True))
            if found := [each for some in read for each in some]:
                store(bars, found, False, lambda _: None)
        gaps = bars.gaps(series, Span(0, EVER))
        stored = bars.read(series, 0, EVER)
        return gaps, columns(stored), asyncio.run(served(bars, name))


def packed(paths: list[Path], archive: Path) -> Path:
    with zipfile.ZipFile(archive, "w") as made:
        for path in paths:
            made.write(path, path.name)
    return archive


async def served(bars: ParquetStore, name: str) -> dict[str, object]:
    series = series_named(name)
    service = BarService(bars, NoFeed(), FixedClock(NOW))
    try:
        found: dict[str, object] = {}
        for timeframe in SERVED[name]:
            wanted = Series(series.instrument, Timeframe[timeframe])
            shown = await service.span(wanted, None, None)
            assert shown.same_as(await service.latest(series.instrument, wanted.timeframe)) or len(shown) > 3000
            found[timeframe] = columns(shown)
        return found
    finally:
        await service.threads.close()


def columns(bars: object) -> list[list[float]]:
    return [np.asarray(column).tolist() for column in bars.columns()]  # type: ignore[attr-defined]


@given(splits())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(Split("AAPL 1d", whole(60), ((whole(60)[30:], whole(60)[:30]),)))
@example(Split("AAPL 1d", (*whole(10), *range(13, 30)), ((whole(10),), (tuple(range(13, 30)),))))
@example(Split("AAPL", tuple(range(388)), ((tuple(range(0, 388, 2)),), (tuple(range(1, 388, 2)),))))
def test_any_split_of_a_file_into_files_and_commands_gives_the_same_home(split: Split) -> None:
    assert home_after(split.name, split.commands, zipped=split.zipped) == home_after(split.name, ((split.rows,),))


@given(plain_splits())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(Split("BTC/USD 1h", whole(24), (tuple((each,) for each in whole(24)),)))
@example(Split("AAPL 1d", whole(40), (((39,), whole(39)),), zipped=True))
def test_files_that_are_too_short_to_show_their_timeframe_give_the_same_home(split: Split) -> None:
    home = home_after(split.name, split.commands, zipped=split.zipped, named=False)
    assert home == home_after(split.name, ((split.rows,),))


@st.composite
def parts_of_symbols(draw: st.DrawFn) -> tuple[tuple[str, Rows], ...]:
    """Files of several symbols in any order, of which each symbol has some."""
    files: list[tuple[str, Rows]] = []
    for symbol in draw(st.sets(st.sampled_from(["AAPL", "EUR/USD", "MSFT"]), min_size=2)):
        count = draw(st.integers(14, 40))
        cuts = sorted(draw(st.sets(st.integers(1, count - 1), max_size=4)) | {0, count})
        files += [(symbol, tuple(range(low, high))) for low, high in pairwise(cuts)]
    return tuple(draw(st.permutations(files)))


def days_after(parts: tuple[tuple[str, Rows], ...], commands: int) -> dict[str, tuple[object, ...]]:
    """Imports files of days, which name their symbol, in some commands; the coverage and the bars of each symbol."""
    symbols = sorted({symbol for symbol, _ in parts})
    times = {symbol: times_of("EUR/USD 1d" if symbol == "EUR/USD" else "AAPL 1d") for symbol in symbols}
    with tempfile.TemporaryDirectory() as folder, closing(ParquetStore(Path(folder) / "data")) as bars:
        files = Files(Path(folder))
        paths = []
        for number, (symbol, rows) in enumerate(parts):
            lines = [f"{times[symbol][row]},{symbol},10,{12 + row % 5},9,{10 + row % 3},{row}" for row in rows]
            text = "\n".join(["timestamp,symbol,open,high,low,close,volume", *lines, ""])
            paths.append(files.write(text, f"{number}.csv"))
        for at_command in range(commands):
            reader = FileReader(ImportOptions(None, Timeframe.D1), NOW)
            chosen = paths[at_command::commands]
            first = [reader.first(path) for path in chosen]
            read = (reader.again(path) if each is None else each for path, each in zip(chosen, first, strict=True))
            if found := [each for some in read for each in some]:
                store(bars, found, False, lambda _: None)
        found_by_symbol: dict[str, tuple[object, ...]] = {}
        for symbol in symbols:
            series = series_named(f"{symbol} 1d")
            stored = columns(bars.read(series, 0, EVER))
            found_by_symbol[symbol] = bars.gaps(series, Span(0, EVER)), stored, asyncio.run(shown(bars, series))
        return found_by_symbol


async def shown(bars: ParquetStore, series: Series) -> list[list[float]]:
    service = BarService(bars, NoFeed(), FixedClock(NOW))
    try:
        return columns(await service.span(series, None, None))
    finally:
        await service.threads.close()


@given(parts_of_symbols(), st.integers(1, 3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example((("AAPL", whole(20)[10:]), ("MSFT", whole(20)), ("AAPL", whole(20)[:10])), 1)
def test_files_of_several_symbols_in_one_command_give_the_same_home(
    parts: tuple[tuple[str, Rows], ...], commands: int
) -> None:
    rows: dict[str, list[int]] = {}
    for symbol, some in parts:
        rows.setdefault(symbol, []).extend(some)
    one_each = tuple((symbol, tuple(sorted(some))) for symbol, some in sorted(rows.items()))
    assert days_after(parts, commands) == days_after(one_each, 1)
