"""The range of a chart: a preset (`YTD`), a length (`7D`, `4H`), or two times (`2026-03-03/2026-03-17`).

Configs write two times as an ISO 8601 interval. Dates without a time are whole UTC days, the last one included.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from openbell.charts.config.choices import PRESETS
from openbell.market.errors import InvalidParameter

_LENGTH = re.compile(r"([1-9]\d{0,4})(MIN|H|D|W|M|Y)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNITS = {"MIN": timedelta(minutes=1), "H": timedelta(hours=1), "D": timedelta(days=1), "W": timedelta(days=7)}
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST_YEAR = 2199
FORMS = f"one of {', '.join(PRESETS)}, a length such as 7D, 4H or 18M, or two times such as 2026-03-03/2026-03-17"


@dataclass(frozen=True, slots=True)
class RangeBounds:
    """Two times. `start` is None if the range is all there is."""

    start: datetime | None
    end: datetime


def read_range(value: object) -> str:
    """Returns a range in its written form. Raises `InvalidParameter` if it is none.

    Accepts the vendor's form `{"from": …, "to": …}` as well.
    """
    if isinstance(value, dict):
        if set(value) != {"from", "to"} or not all(isinstance(each, str) for each in value.values()):
            raise InvalidParameter('range must have "from" and "to", two ISO 8601 times')
        value = f"{value['from']}/{value['to']}"
    if not isinstance(value, str) or len(value) > 80:
        raise InvalidParameter(f"range must be {FORMS}")
    text = value.strip()
    if "/" in text:
        _interval(text)
        return text
    text = text.upper()
    if text not in PRESETS and not _LENGTH.fullmatch(text):
        raise InvalidParameter(f"range {value[:40]!r} must be {FORMS}")
    return text


def bounds_of(text: str, now: datetime) -> RangeBounds:
    """Returns the two times of a range in its written form."""
    if "/" in text:
        return _interval(text)
    if text == "ALL":
        return RangeBounds(None, now)
    if text in {"DTD", "WTD", "MTD", "YTD"}:
        return RangeBounds(_period_start(text, now), now)
    found = _LENGTH.fullmatch(text)
    if found is None:
        raise InvalidParameter(f"range {text[:40]!r} must be {FORMS}")
    return RangeBounds(_before(now, int(found[1]), found[2]), now)


def _period_start(preset: str, now: datetime) -> datetime:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if preset == "WTD":
        return midnight - timedelta(days=now.weekday())
    if preset == "MTD":
        return midnight.replace(day=1)
    return midnight.replace(month=1, day=1) if preset == "YTD" else midnight


def _before(now: datetime, count: int, unit: str) -> datetime:
    """Returns the time a number of units before another; never before 1900."""
    if unit in _UNITS:
        try:
            return max(EARLIEST, now - count * _UNITS[unit])
        except OverflowError:
            return EARLIEST
    month = now.year * 12 + now.month - 1 - count * (12 if unit == "Y" else 1)
    year, month = divmod(month, 12)
    if year < EARLIEST.year:
        return EARLIEST
    return now.replace(year=year, month=month + 1, day=min(now.day, monthrange(year, month + 1)[1]))


def _interval(text: str) -> RangeBounds:
    first, _, last = text.partition("/")
    start, end = _time(first), _time(last)
    if _DATE.fullmatch(last.strip()):
        end += timedelta(days=1)
    if start >= end:
        raise InvalidParameter(f"range {text[:60]!r} ends before it begins")
    return RangeBounds(start, end)


def _time(text: str) -> datetime:
    text = text.strip()
    try:
        if _DATE.fullmatch(text):
            day = date.fromisoformat(text)
            found = datetime(day.year, day.month, day.day, tzinfo=UTC)
        else:
            found = datetime.fromisoformat(text)
            found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidParameter(f"{text[:40]!r} in range is not an ISO 8601 date or time") from None
    if not EARLIEST.year <= found.year <= LATEST_YEAR:
        raise InvalidParameter(f"{text[:40]!r} in range must be between {EARLIEST.year} and {LATEST_YEAR}")
    return found
