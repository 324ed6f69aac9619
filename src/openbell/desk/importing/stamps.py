"""Reads a file's column of times, whatever it holds: timestamps, epochs, ISO 8601, or dates as countries write them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from openbell.desk.importing.layout import quoted
from openbell.desk.importing.patterns import NAIVE, Parsed, Pattern, compiled, offset_of, parse
from openbell.market.clock import iso
from openbell.market.errors import InvalidParameter
from openbell.market.session_table import Times

Mask = npt.NDArray[np.bool_]
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MAGNITUDES = ((1e17, 10**9), (1e14, 10**6), (1e11, 10**3))
"""Epochs from each size on are in a unit with so many parts of a second."""
_FARTHEST = 60e14
"""Seconds. Larger values are clipped so that they fit into 64 bits; they are refused as future times."""
EPOCH = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
COMPACT = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?P<time>\d{6})?", re.ASCII)
"""20240506 or 20240506153000. As epochs, such numbers are times in 1970, which are never accepted."""
ISO = re.compile(
    r"(?:\d{4}-\d\d-\d\d|\d{8}(?=T))"
    r"(?P<time>[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,](?P<fraction>\d+))?)?)?(?P<zone>Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII | re.IGNORECASE,
)
_DATES = (
    (re.compile(r"\d{4}(?P<sep>[-./])\d{1,2}(?P=sep)\d{1,2}", re.ASCII), ("%Y{0}%m{0}%d",)),
    (re.compile(r"\d{1,2}(?P<sep>\.)\d{1,2}\.\d{4}", re.ASCII), ("%d{0}%m{0}%Y",)),
    (re.compile(r"\d{1,2}(?P<sep>[-/])\d{1,2}(?P=sep)\d{4}", re.ASCII), ("%m{0}%d{0}%Y", "%d{0}%m{0}%Y")),
    (re.compile(r"\d{8}(?!\d)(?P<sep>)", re.ASCII), ("%Y%m%d",)),
    (re.compile(r"\d{8}(?P<sep>)(?=\d{6}$)", re.ASCII), ("%Y%m%d",)),
    (re.compile(r"\d{1,2}(?P<sep>[- ])[A-Za-z]{3,9}(?P=sep)\d{4}", re.ASCII), ("%d{0}%b{0}%Y",)),
    (re.compile(r"[A-Za-z]{3,9} \d{1,2}(?P<sep>,?) \d{4}", re.ASCII), ("%b %d{0} %Y",)),
)
"""The ways to write a date, each with its formats; two if the order of day and month differs between countries."""
_TIMES = (
    (re.compile(r"\d{1,2}:\d\d:\d\d\.\d+", re.ASCII), "%H:%M:%S.%f"),
    (re.compile(r"\d{1,2}:\d\d:\d\d(?P<p> ?[AP]M)", re.ASCII | re.IGNORECASE), "%I:%M:%S{0}%p"),
    (re.compile(r"\d{1,2}:\d\d(?P<p> ?[AP]M)", re.ASCII | re.IGNORECASE), "%I:%M{0}%p"),
    (re.compile(r"\d{1,2}:\d\d:\d\d", re.ASCII), "%H:%M:%S"),
    (re.compile(r"\d{1,2}:\d\d", re.ASCII), "%H:%M"),
    (re.compile(r"\d{6}", re.ASCII), "%H%M%S"),
    (re.compile(r"\d{4}", re.ASCII), "%H%M"),
)
_ZONE_NAME = re.compile(r".*\d (?P<zone>[A-Z][A-Za-z_]+/[A-Za-z_/]+)", re.ASCII)
"""A time that ends with the name of its zone, as Interactive Brokers writes it: 20240506 09:30:00 US/Eastern."""
_BETWEEN = re.compile(r"T|,? +", re.ASCII)
_OFFSET = re.compile(r"(?P<blank> ?)(?:Z|UTC|GMT|(?:UTC|GMT)?[+-]\d\d(?::?\d\d)?)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Stamps:
    """The times of a file's rows as they are written."""

    times: Parsed
    dates: bool
    """True if no row has a time of day."""
    zone: str | None = None
    """The zone, if all times end with the same name of one."""

    def zoned(self) -> Mask:
        """Returns a mask of the times that have a zone."""
        mask: Mask = self.times.offset != NAIVE
        return mask


def read_stamps(column: Any, date_format: str | None = None) -> Stamps:
    """Reads an Arrow column. Raises `InvalidParameter` if its type is not one of times, or if its dates are ambiguous."""
    kind, types = column.type, pa.types
    if types.is_timestamp(kind):
        zoned = kind.tz is not None
        ticks, valid = _integers(column)
        utc, rest = np.divmod(ticks, UNITS[kind.unit])
        local = utc
        if zoned and kind.tz != "UTC":
            local = _local(column) // UNITS[kind.unit]
        offset = local - utc if zoned else np.full(len(utc), NAIVE)
        return Stamps(Parsed(local, offset, valid, rest == 0), dates=False)
    if types.is_date(kind):
        seconds, valid = _integers(column.cast(pa.timestamp("s")))
        return Stamps(Parsed(seconds, np.full(len(seconds), NAIVE), valid, np.ones(len(valid), dtype=bool)), dates=True)
    if types.is_string(kind) or types.is_large_string(kind):
        return _from_texts(_trimmed(column.fill_null("")), date_format)
    if types.is_integer(kind):
        return _from_epochs(*_integers(column))
    if types.is_floating(kind):
        values = np.asarray(column.cast(pa.float64()).fill_null(np.nan))
        return _from_epochs(np.clip(np.nan_to_num(values), -_FARTHEST, _FARTHEST), np.isfinite(values))
    raise InvalidParameter(
        f"column timestamp holds {quoted(str(kind))}: times are timestamps, dates, integers or texts"
    )


def _integers(column: Any) -> tuple[Times, Mask]:
    """Returns integers or timestamps as numbers, and a mask of those that are not missing.

    Arrow's functions take 80 ms to load, so they are used only if values are missing.
    """
    if column.null_count:
        return np.asarray(column.cast(pa.int64()).fill_null(0)), np.asarray(column.is_valid())
    return column.to_numpy().astype(np.int64), np.ones(len(column), dtype=bool)


def _trimmed(texts: Any) -> Any:
    from pyarrow import compute as pc

    return pc.utf8_trim_whitespace(texts)


def _local(column: Any) -> Times:
    """Returns timestamps as the clocks of their zone show them."""
    from pyarrow import compute as pc

    try:
        ticks: Times = np.asarray(pc.local_timestamp(column).cast(pa.int64()).fill_null(0))
    except pa.ArrowException as error:
        raise InvalidParameter(f"has times of the zone {quoted(column.type.tz)}, which is unknown") from error
    return ticks


def arrow_type(texts: list[str], date_format: str | None) -> Any:
    """Returns the Arrow type with which a CSV column with these first texts is read fastest."""
    first = texts[0] if texts else ""
    if date_format or COMPACT.fullmatch(first):
        return pa.string()
    if EPOCH.fullmatch(first):
        return pa.int64() if first.isdigit() else pa.float64()
    match = ISO.fullmatch(first)
    if match is None or (match["zone"] and _are_days(texts)):
        return pa.string()  # the local dates of days are needed, which a timestamp does not keep
    return pa.timestamp("us", "UTC" if match["zone"] else None)


def are_dates(texts: list[str]) -> bool:
    """Returns True if all texts are ISO dates without a time of day."""
    return bool(texts) and all((match := ISO.fullmatch(text)) and match["time"] is None for text in texts)


def _are_days(texts: list[str]) -> bool:
    """Returns True if there are several times, and no two of them are less than 20 hours apart."""
    try:
        moments = sorted({datetime.fromisoformat(text.upper()).timestamp() for text in texts})
    except ValueError:
        return True
    return len(moments) > 1 and all(b - a >= 20 * 3600 for a, b in pairwise(moments))


def _from_epochs(epochs: npt.NDArray[Any], readable: Mask) -> Stamps:
    """Reads seconds, or ms, µs or ns by their size."""
    size = np.abs(epochs)
    seconds, whole = epochs, np.ones(len(epochs), dtype=bool)
    for least, parts in reversed(_MAGNITUDES):
        if (larger := size >= least).any():
            # The largest unit comes last and replaces the others.
            seconds = np.where(larger, epochs // parts, seconds)
            whole = np.where(larger, epochs % parts == 0, whole)
    if epochs.dtype.kind == "f":
        whole &= seconds == np.floor(seconds)
    offset = np.zeros(len(epochs), dtype=np.int64)
    return Stamps(Parsed(np.floor(seconds).astype(np.int64), offset, readable, whole), dates=False)


def _from_texts(texts: Any, date_format: str | None) -> Stamps:
    from pyarrow import compute as pc

    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    if date_format:
        pattern = compiled(date_format)
        return Stamps(parse(texts, pattern), pattern.dates)
    some = texts[:100].to_pylist()
    if some and (named := _ZONE_NAME.fullmatch(some[0])):
        ending = pc.ends_with(texts, pattern=f" {named['zone']}")
        if pc.all(ending).as_py():
            bare = pc.utf8_slice_codeunits(texts, 0, -len(named["zone"]) - 1)
            return replace(_from_texts(_trimmed(bare), None), zone=named["zone"])
    candidates = next(filter(None, map(formats_of, some)), [])
    patterns = [compiled(each) for each in candidates]
    if not patterns:
        return _one_by_one(texts)
    readings = [parse(texts, pattern) for pattern in patterns]
    chosen = _chosen(texts, readings, patterns)
    reading, pattern = readings[chosen], patterns[chosen]
    if reading.readable.all():
        return Stamps(reading, pattern.dates)
    rest = np.flatnonzero(~reading.readable)
    others = _one_by_one(texts.take(pa.array(rest)))
    joined = [_replaced(a, rest, b) for a, b in zip(_arrays(reading), _arrays(others.times), strict=True)]
    return Stamps(Parsed(*joined), pattern.dates and (others.dates or not others.times.readable.any()))


def _arrays(parsed: Parsed) -> tuple[npt.NDArray[Any], ...]:
    return parsed.written, parsed.offset, parsed.readable, parsed.whole


def _replaced(values: npt.NDArray[Any], at: Times, others: npt.NDArray[Any]) -> npt.NDArray[Any]:
    values = values.copy()
    values[at] = others
    return values


def _chosen(texts: Any, readings: list[Parsed], patterns: list[Pattern]) -> int:
    """Returns which reading is right. Raises `InvalidParameter` if both orders of day and month fit all rows."""
    if len(readings) == 1:
        return 0
    counts = [int(reading.readable.sum()) for reading in readings]
    if counts[0] != counts[1]:
        return int(counts[1] > counts[0])
    differs = readings[0].readable & readings[1].readable & (readings[0].written != readings[1].written)
    if not differs.any():
        return 0
    at = int(np.flatnonzero(differs)[0])
    ways = " or ".join(
        f"{iso(int(reading.written[at]))[:10]} (--date-format '{pattern.format}')"
        for reading, pattern in zip(readings, patterns, strict=True)
    )
    raise InvalidParameter(f"{quoted(texts[at].as_py())} can be {ways}, and no row of the file tells which")


def formats_of(text: str) -> list[str]:
    """Returns the formats that a time may have, none if it is an epoch or unknown."""
    if EPOCH.fullmatch(text) and not COMPACT.fullmatch(text):
        return []
    for regex, formats in _DATES:
        if match := regex.match(text):
            tail = _tail_format(text[match.end() :])
            if tail is not None:
                return [form.format(match["sep"]) + tail for form in formats]
    return []


def _tail_format(text: str) -> str | None:
    """Returns the format of what follows a date; None if it is no time of day."""
    if not text:
        return ""
    between = _BETWEEN.match(text)
    space = between[0] if between else ""
    if not space and not re.fullmatch(r"\d{6}", text, re.ASCII):
        return None
    text = text[len(space) :]
    for regex, form in _TIMES:
        if match := regex.match(text):
            rest = text[match.end() :]
            mark = match.groupdict().get("p") or ""
            head = space + form.format(" " if mark[:1] == " " else "")
            if not rest:
                return head
            if zone := _OFFSET.fullmatch(rest):
                return f"{head}{zone['blank']}%z"
    return None


Cell = tuple[int, int, bool, bool, bool]
"""A time: seconds as written, offset, and if it is a date, readable, whole."""
_UNREADABLE: Cell = (0, NAIVE, False, False, True)


def _one_by_one(texts: Any) -> Stamps:
    """Reads texts that may each have another form."""
    cells = [time_of(text) for text in texts.to_pylist()]
    written, offset, dated, readable, whole = zip(*cells, strict=True) if cells else ([], [], [], [], [])
    parsed = Parsed(
        np.array(written, dtype=np.int64),
        np.array(offset, dtype=np.int64),
        np.array(readable, dtype=bool),
        np.array(whole, dtype=bool),
    )
    return Stamps(parsed, all(dated) and bool(cells))


def time_of(text: str) -> Cell:
    """Reads an epoch, an ISO 8601 time or a compact one such as 20240506."""
    if COMPACT.fullmatch(text):
        return _compact(text)
    if EPOCH.fullmatch(text):
        return _epoch(text)
    match = ISO.fullmatch(text)
    try:
        moment = datetime.fromisoformat(text.upper()) if match else None
    except ValueError:
        moment = None
    if match is None or moment is None:
        return _UNREADABLE
    whole = not (match["fraction"] or "").strip("0")
    offset = offset_of(match["zone"].upper()) if match["zone"] else NAIVE
    return _seconds(moment), offset, match["time"] is None, True, whole


def _compact(text: str) -> Cell:
    try:
        # strptime accepts fewer digits, so the rest is filled up.
        moment = datetime.strptime(text.ljust(14, "0"), "%Y%m%d%H%M%S")  # noqa: DTZ007 (the zone is decided later)
    except ValueError:
        return _UNREADABLE
    return _seconds(moment), NAIVE, len(text) == 8, True, True


def _epoch(text: str) -> Cell:
    digits = text.lstrip("+-").isdigit() and len(text) < 20
    number = int(text) if digits else min(max(float(text), -_FARTHEST), _FARTHEST)
    unit = next((parts for least, parts in _MAGNITUDES if abs(number) >= least), 1)
    seconds = int(number // unit)
    return seconds, 0, False, True, seconds * unit == number


def _seconds(moment: datetime) -> int:
    return int(moment.replace(tzinfo=UTC, microsecond=0).timestamp())
