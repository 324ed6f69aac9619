"""What a format is: how it recognises a file, and which columns of the file hold which values."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from openbell.market.errors import InvalidParameter
from openbell.market.provenance import Adjustment
from openbell.market.timeframes import Timeframe

PRICES = ("open", "high", "low", "close")
FIELDS = ("timestamp", *PRICES, "volume")
"""The columns of a plain file."""
TIME_NAMES = (
    *("timestamp", "ts", "time", "date", "datetime", "gmt time", "local time"),
    *("open time", "open_time", "opentime"),
)
SYMBOL_NAMES = ("symbol", "ticker")
ALIASES: dict[str, tuple[str, ...]] = {
    "open": ("open",),
    "high": ("high",),
    "low": ("low",),
    "close": ("close",),
    "volume": ("volume", "vol"),
    "adjusted": ("adj close", "adj_close", "adjclose", "adjusted_close", "adjusted close"),
}
SHOWN = 10
"""How many rows or names a message lists."""
_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableBlock:
    """The columns of the bars of one symbol, counted from 0."""

    open: int
    high: int
    low: int
    close: int
    volume: int | None = None
    adjusted: int | None = None
    symbol: str | None = None
    """The symbol, if the header or the file name names it."""

    def columns(self) -> tuple[int, ...]:
        """Returns the columns of open, high, low, close, and those of volume and adjusted close that exist."""
        prices = (self.open, self.high, self.low, self.close)
        return prices + tuple(each for each in (self.volume, self.adjusted) if each is not None)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the values of a file are, and what its format says about them."""

    time: tuple[int, ...]
    """The columns of the time; date and time of day may be two columns."""
    blocks: tuple[TableBlock, ...]
    skip: int = 1
    """How many lines with text the header has."""
    symbol: int | None = None
    """The column of the symbol, if each row names its own."""
    period: int | None = None
    """The column of the timeframe, if each row names its own."""
    zone: str | None = None
    """The time zone of times without one, by the format's convention; None for UTC."""
    timeframe: Timeframe | None = None
    """The timeframe, if the format or the file name states it."""
    width: int = 0
    """The number of columns."""
    notes: tuple[str, ...] = ()
    spell: Callable[[str], str] = field(default=str.strip)
    """Turns the format's spelling of a symbol into one that `market.instruments.parse` reads."""
    adjustment: Adjustment = Adjustment.RAW
    """What the format's prices of stocks are adjusted for."""
    intraday_adjustment: Adjustment | None = None
    """The same of bars below a day, if it differs."""

    def adjustment_at(self, timeframe: Timeframe) -> Adjustment:
        """Returns what the format's prices of stocks at a timeframe are adjusted for."""
        return self.intraday_adjustment or self.adjustment if timeframe.intraday else self.adjustment


@dataclass(frozen=True, slots=True)
class Sample:
    """The file name and the first rows of a file, from which a format recognises itself."""

    name: str
    rows: Sequence[Sequence[str]]
    delimiter: str = ","

    @property
    def names(self) -> list[str]:
        """Returns the cells of the first row, in lower case, without blanks and angle brackets."""
        return [_plain_name(cell) for cell in self.rows[0]] if self.rows else []

    @property
    def body(self) -> Sequence[Sequence[str]]:
        """Returns the rows after the first one."""
        return self.rows[1:]

    def has_header(self) -> bool:
        """Returns True if the first row holds fewer than four numbers."""
        return not self.rows or sum(map(is_number, self.rows[0])) < 4

    def column(self, at: int, skip: int = 1) -> list[str]:
        """Returns the cells of a column that are not blank."""
        return [row[at].strip() for row in self.rows[skip:] if at < len(row) and row[at].strip()]


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. `recognise` returns its layout for a sample, or None if the sample has another format."""

    name: str
    looks_like: str
    """One line for the documentation."""
    recognise: Callable[[Sample], Layout | None]
    rank: int = 50
    """Formats of a lower rank are tried first."""


def is_number(text: str) -> bool:
    """Returns True if a cell is a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(text.strip()) is not None


def quoted(text: str) -> str:
    """Returns a text quoted for a message, at most 40 characters long."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def listed(names: Sequence[str]) -> str:
    """Returns the first few names for a message, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def find(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Returns the column that has one of the names. Raises `InvalidParameter` if two have."""
    found = [at for at, name in enumerate(names) if name in wanted]
    if len(found) > 1:
        raise InvalidParameter(f"repeated column {listed([quoted(names[at]) for at in found])}")
    return found[0] if found else None


def by_names(
    sample: Sample, aliases: dict[str, tuple[str, ...]] = ALIASES, times: Sequence[str] = TIME_NAMES
) -> Layout | None:
    """Returns the layout of a header that names its columns; None if it has no time or no prices."""
    if not sample.has_header():
        return None
    names = sample.names
    time = _time_columns(names, times)
    prices = [find(names, aliases[name]) for name in PRICES]
    if time is None or None in prices:
        return None
    o, h, low, c = (each for each in prices if each is not None)
    block = TableBlock(o, h, low, c, find(names, aliases["volume"]), find(names, aliases["adjusted"]))
    symbol = find(names, SYMBOL_NAMES)
    return Layout(time, (block,), symbol=symbol, width=len(names))


def missing(names: Sequence[str]) -> list[str]:
    """Returns the fields for which a header has no column."""
    absent = [] if _time_columns(names, TIME_NAMES) else ["timestamp"]
    return absent + [field for field in FIELDS[1:] if find(names, ALIASES[field]) is None]


def unused(layout: Layout, names: Sequence[str]) -> list[str]:
    """Returns the quoted names of the columns that the layout does not use; columns without a name are left out."""
    used = {*layout.time, layout.symbol, layout.period}
    used.update(column for block in layout.blocks for column in block.columns())
    return [quoted(name.strip()) for at, name in enumerate(names) if at not in used and name.strip()]


def _time_columns(names: Sequence[str], wanted: Sequence[str]) -> tuple[int, ...] | None:
    """Returns the column of the time, or two of them if date and time of day are apart."""
    if names.count("date") == 1 and names.count("time") == 1:
        return names.index("date"), names.index("time")
    if (found := find(names, wanted)) is not None:
        return (found,)
    # pandas writes an index without a name so, the first into CSV, the second into Parquet.
    unnamed = 0 if names[:1] == [""] else find(names, ("__index_level_0__",))
    return None if unnamed is None else (unnamed,)


def _plain_name(cell: str) -> str:
    name = cell.strip().lower()
    return name[1:-1] if name[:1] == "<" and name[-1:] == ">" else name
