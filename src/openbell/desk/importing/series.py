"""Builds bars from the rows of a file: zones, timeframe, keys, checks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from openbell.desk.importing.checks import checked, hints, without_flat_weekends, without_unclosed
from openbell.desk.importing.keys import Zone, date_text, keys_of, to_utc, zone_of
from openbell.desk.importing.layout import Layout, TableBlock
from openbell.desk.importing.naming import NamedGroup, groups_of
from openbell.desk.importing.rows import OFF_MINUTE, Faults, Rows
from openbell.desk.importing.shared_timeframes import SharedTimeframes, UnclearRows
from openbell.desk.importing.spacing import UnclearTimeframe, detect
from openbell.desk.importing.stamps import Stamps
from openbell.market import bars as barlib
from openbell.market.bars import Bars, Values
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import Adjustment
from openbell.market.session_table import Times
from openbell.market.sessions import FIRST_YEAR
from openbell.market.timeframes import SHORT, Timeframe, name_of

Mask = npt.NDArray[np.bool_]
_DAY = 86400
DATES = "dates"
"""What `FileSeries.zone` says of a file that has dates without a time of day."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user says about a file."""

    symbol: Instrument | None = None
    timeframe: Timeframe | None = None
    zone: Zone | None = None
    date_format: str | None = None
    adjusted: bool = False
    by_name: bool = False
    """The name of a file is its symbol, unless the file names one itself."""
    adjustment: Adjustment | None = None
    """What the prices are adjusted for; None for what the format declares."""
    skip_bad: bool = False
    """Bad rows are left out and listed in the notes, instead of refusing the file."""
    shared: SharedTimeframes | None = None
    """The timeframes of all files of the command; None to read a file by itself."""


@dataclass(frozen=True, slots=True)
class FileSeries:
    """The bars of one symbol in a file, and what was recognised."""

    file: str
    format: str
    symbol: str | None
    """The symbol as the file names it; None if it does not."""
    bars: Bars
    adjustment: Adjustment
    zone: str
    """The zone of the times: a name, `in the file` if each time has its own, or `dates`."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Clocked:
    """The rows that have a readable time, with their times in UTC."""

    rows: Rows
    times: Times
    days: Times
    good: Mask
    dates: bool
    """True if the times are dates, written with or without midnight."""
    zone: str
    notes: list[str]


def assemble(rows: Rows, layout: Layout, options: ImportOptions, faults: Faults, now: float) -> list[FileSeries]:
    """Returns the series of a file's rows, without their file and format. Bad rows are added to `faults`.

    Raises `InvalidParameter` if the rows as a whole cannot be bars, or if none is left.
    """
    if not len(rows.places) and not faults.counts:
        raise InvalidParameter("the file names its columns but holds no bars")
    clocked = _with_times(rows, layout, options, faults)
    groups, notes = groups_of(rows, layout, options.symbol)
    clocked.notes.extend(notes)
    if options.timeframe is None and rows.periods is None:
        shared = options.shared or SharedTimeframes(complete=True)
        groups = _with_timeframe(clocked, groups, layout.timeframe, shared, faults, now)
    found = []
    for group in groups:
        timeframe = options.timeframe or group.timeframe or Timeframe.M1
        part = _rows_of(clocked, group)
        faults.subject = f"{group.name}: " if len(layout.blocks) > 1 else ""
        series = _series(part, group, layout.blocks[group.block], timeframe, options, faults, now)
        found.append(replace(series, adjustment=_adjustment(series.bars, layout, options)))
    if not faults.counts and not any(len(series.bars) for series in found):
        raise InvalidParameter(f"holds no bar that can be imported: {'; '.join(found[0].notes)}")
    return [series for series in found if len(series.bars)]


def _with_times(rows: Rows, layout: Layout, options: ImportOptions, faults: Faults) -> _Clocked:
    """Converts the times to UTC. Adds times that cannot be converted to `faults`."""
    stamps = rows.stamps
    good = stamps.times.readable.copy()
    if (part := good & ~stamps.times.whole).any():
        faults.add(OFF_MINUTE, rows.places[part])
        good &= stamps.times.whole
    written, days = stamps.times.written, stamps.times.written // _DAY
    zoned = stamps.zoned()
    if stamps.dates or _are_midnights(written[good], zoned):
        notes = ["dates have no zone, so --tz was not used"] if options.zone else []
        return _Clocked(rows, written, days, good, True, DATES, notes)
    if zoned.all():
        notes = ["each time has its own zone, so --tz was not used"] if options.zone and len(zoned) else []
        return _Clocked(rows, written - stamps.times.offset, days, good, False, "in the file", notes)
    zone = zone_of(stamps.zone) if stamps.zone else options.zone or zone_of(layout.zone or "UTC")
    utc, skipped, twice = to_utc(written, zone)
    for mask, what in ((skipped, "does not exist"), (twice, "exists twice")):
        if (found := good & ~zoned & mask).any():
            texts = [f"{_clock(at)} {what} in {zone.key}, where summer time changes" for at in written[found].tolist()]
            faults.add(f"time {what}", rows.places[found], texts)
            good &= ~found
    times = np.where(zoned, written - np.where(zoned, stamps.times.offset, 0), utc)
    stated = options.zone or layout.zone or stamps.zone
    notes = [] if stated else ["times without a zone were taken as UTC (--tz names another zone)"]
    notes += ["each time has its own zone, so --tz was not used"] if stamps.zone and options.zone else []
    return _Clocked(rows, times, days, good, False, zone.key, notes)


def _are_midnights(written: Times, zoned: Mask) -> bool:
    """Returns True if the times are dates to which a program has added 00:00. One alone may be a minute."""
    return len(written) > 1 and not zoned.any() and written[0] % _DAY == 0 and not (written % _DAY).any()


def _clock(seconds: int) -> str:
    return str(np.datetime64(seconds, "s")).replace("T", " ")


def _with_timeframe(
    clocked: _Clocked,
    groups: list[NamedGroup],
    claimed: Timeframe | None,
    shared: SharedTimeframes,
    faults: Faults,
    now: float,
) -> list[NamedGroup]:
    """Returns the groups with the timeframe of all rows together: a symbol with few trades alone may not show it.

    Raises `InvalidParameter` if the spacing of the rows is another than that of the file's name.
    """
    usable = clocked.good & (clocked.times % 60 == 0) & (clocked.times <= now) & _filled(clocked.rows)
    index = _index(usable)
    try:
        found = _detected(clocked, index, groups, None if claimed or faults.counts else shared)
    except InvalidParameter:
        if claimed is None and not faults.counts:
            raise
        # A file with bad rows is refused for them, and they may be why the others are spaced oddly. The checks find more.
        found = claimed or (Timeframe.D1 if clocked.dates else Timeframe.M1)
    if claimed is not None and claimed is not found and usable.sum() > 1 and not faults.counts:
        names = name_of(claimed, SHORT), name_of(found, SHORT)
        raise InvalidParameter(
            f"its name says {names[0]}, but its rows are {names[1]} bars: --timeframe settles which it is"
        )
    return [replace(group, timeframe=claimed or found) for group in groups]


def _detected(
    clocked: _Clocked, index: slice | Mask, groups: list[NamedGroup], shared: SharedTimeframes | None
) -> Timeframe:
    """Returns the timeframe of rows by their spacing, else by that of other files. Raises `InvalidParameter`."""
    classes = {group.instrument.asset_class for group in groups}
    market = classes.pop() if len(classes) == 1 else AssetClass.CRYPTO
    times, days = clocked.times[index], clocked.days[index]
    try:
        return detect(times, days, clocked.dates, market)
    except UnclearTimeframe as unclear:
        if shared is None:
            raise
        times, first = np.unique(times, return_index=True)
        instruments = frozenset(group.instrument for group in groups)
        return shared.resolve(UnclearRows(instruments, times, days[first], clocked.dates, market), unclear)


def _filled(rows: Rows) -> Mask:
    """Returns a mask of the rows that have a price in any block."""
    found = np.zeros(len(rows.places), dtype=bool)
    for values in rows.values:
        found |= ~np.isnan(values[0]) | ~np.isnan(values[3])
    return found


def _rows_of(clocked: _Clocked, group: NamedGroup) -> _Clocked:
    if group.index is None:
        return clocked
    index = group.index
    rows = clocked.rows.take(index)
    rows = replace(rows, stamps=Stamps(rows.stamps.times, clocked.dates), symbols=None, periods=None)
    return replace(clocked, rows=rows, times=clocked.times[index], days=clocked.days[index], good=clocked.good[index])


def _series(
    part: _Clocked,
    group: NamedGroup,
    block: TableBlock,
    timeframe: Timeframe,
    options: ImportOptions,
    faults: Faults,
    now: float,
) -> FileSeries:
    """Returns the series of one group, which may have no bar."""
    notes = [*part.notes, *group.notes]
    values = part.rows.values[group.block]
    empty = np.logical_and.reduce([np.isnan(price) for price in values[:4]])
    if (count := int((empty & part.good).sum())) > 0:
        notes.append(f"{count:,} row{' has' if count == 1 else 's have'} no prices and {_were(count)} left out")
    good = _index(part.good & ~empty)
    keys = keys_of(group.instrument, timeframe, part.times[good], part.days[good], part.dates)
    places = part.rows.places[good]
    if (count := int(keys.too_early.sum())) > 0:
        notes.append(
            f"{count:,} row{'' if count == 1 else 's'} before {FIRST_YEAR} {_were(count)} left out: "
            f"the calendar of sessions begins in {FIRST_YEAR}"
        )
    _add_bad_keys(part.days[good], places, keys.bad, timeframe, faults)
    taken = _index(~keys.bad & ~keys.too_early)
    columns = (column[good][taken] for column in _columns(values, group.instrument, block, options, notes))
    bars = barlib.make(group.instrument, timeframe, keys.times[taken], *columns)
    bars, places = without_unclosed(bars, places[taken], faults, now, notes)
    bars = checked(bars, places, faults)
    if not faults.counts:
        bars = without_flat_weekends(bars, notes)
    if options.zone is None and part.zone == "UTC":
        notes += hints(bars)
    return FileSeries("", "", group.name, bars, Adjustment.RAW, part.zone, tuple(notes))


def _adjustment(bars: Bars, layout: Layout, options: ImportOptions) -> Adjustment:
    """Returns what prices are adjusted for: as the options say, else as the format declares for stocks."""
    if options.adjusted:
        return Adjustment.ALL
    is_stock = bars.instrument.asset_class is AssetClass.STOCK
    return options.adjustment or (layout.adjustment_at(bars.timeframe) if is_stock else Adjustment.RAW)


def _index(mask: Mask) -> slice | Mask:
    """Returns the mask, or a slice if it takes all rows, which copies nothing."""
    return slice(None) if mask.all() else mask


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _columns(
    values: tuple[Values, ...], instrument: Instrument, block: TableBlock, options: ImportOptions, notes: list[str]
) -> tuple[Values, ...]:
    """Returns open, high, low, close and volume, adjusted if that was asked for."""
    opened, high, low, close, *rest = values
    if block.volume is not None:
        volume = rest.pop(0)
    elif instrument.has_volume:
        raise InvalidParameter("missing column volume")
    else:
        volume = np.zeros(len(close))
        notes.append("no column of volume: it is 0")
    if not options.adjusted or not rest:
        return opened, high, low, close, volume
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = rest[0] / close
        high, low = high * factor, low * factor
    # The adjusted close is used as it is; rounding must not push it outside high and low.
    close = rest[0]
    return opened * factor, np.fmax(high, close), np.fmin(low, close), close, volume


def _add_bad_keys(days: Times, places: Times, bad: Mask, timeframe: Timeframe, faults: Faults) -> None:
    if not bad.any():
        return
    if timeframe is Timeframe.M1:
        faults.add(OFF_MINUTE, places[bad])
    elif timeframe.intraday:
        faults.add(f"time not at a multiple of {name_of(timeframe, SHORT)}", places[bad])
    else:
        texts = [f"no session of US stocks on {date_text(day)}" for day in days[bad].tolist()]
        faults.add("no session", places[bad], texts)
