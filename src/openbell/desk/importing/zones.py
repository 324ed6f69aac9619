"""Converts local times of a time zone into UTC, many at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.market.session_table import Times

Mask = npt.NDArray[np.bool_]
_WEEK = 7 * 86400
_YEAR = 366 * 86400
_EARLIEST, _LATEST = -(2**31), 2**33
"""The times for which offsets are looked up; 1901 to 2242."""
_MOST_HOURS = 14


_AHEAD = re.compile(r"(?P<zone>.+?)(?P<ahead>[+-]\d{1,2})(?::(?P<minutes>[0-5]\d))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Zone:
    """The zone of a file's times: one of the tz database, or the clock that is some hours ahead of one.

    Servers of MetaTrader are 7 hours ahead of New York, so that a trading day of currencies begins at midnight. They change
    to summer time with New York, as no zone of the database does that is so far east.
    """

    key: str
    rules: ZoneInfo
    ahead: int = 0
    """Seconds."""


def zone_of(name: str) -> Zone:
    """Returns a time zone by its IANA name, also with an offset: America/New_York+7, UTC+2. Raises `InvalidParameter`."""
    if (rules := _rules(name)) is not None:
        return Zone(name, rules)
    match = _AHEAD.fullmatch(name)
    base = match["zone"] if match else name
    if match and (rules := _rules(base)) is not None and abs(hours := int(match["ahead"])) <= _MOST_HOURS:
        minutes = int(match["minutes"] or 0)
        return Zone(name, rules, hours * 3600 + (-minutes if match["ahead"][0] == "-" else minutes) * 60)
    from zoneinfo import available_timezones

    names = available_timezones()
    hint = "" if base in names else did_you_mean(base, names)
    raise InvalidParameter(
        f"{name[:40]!r} is not a time zone: use a name such as America/New_York or UTC, or one with the hours that the "
        f"clock is ahead of it, such as America/New_York+7 or UTC+2{hint}"
    )


def _rules(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder of the database
        return None


def to_utc(local: Times, zone: Zone) -> tuple[Times, Mask, Mask]:
    """Returns UTC times, a mask of local times that do not exist, and a mask of those that exist twice.

    Both occur once a year where summer time begins and ends. A time that exists twice is converted as the first one.
    """
    if zone.ahead:
        local = local - zone.ahead
    none = np.zeros(len(local), dtype=bool)
    if not len(local) or zone.rules.key in {"UTC", "Etc/UTC", "GMT"}:
        return local, none, none
    first = max(int(local.min()) - 2 * 86400, _EARLIEST) // _YEAR * _YEAR
    last = -(-min(int(local.max()) + 2 * 86400, _LATEST) // _YEAR) * _YEAR
    changes, offsets = _changes(zone.rules, first, max(last, first + _YEAR))
    # The clock shows `change + before` when the offset changes to `after`.
    before, after = offsets[:-1], offsets[1:]
    row = np.searchsorted(changes + np.maximum(before, after), local, side="right")
    utc = local - offsets[row]
    if not len(changes):
        return utc, none, none
    nearest = np.minimum(row, len(changes) - 1)
    near = (row < len(changes)) & (local >= changes[nearest] + np.minimum(before, after)[nearest])
    skipped = near & (after > before)[nearest]
    return utc, skipped, near & ~skipped


@lru_cache(maxsize=64)
def _changes(zone: ZoneInfo, first: int, last: int) -> tuple[Times, Times]:
    """Returns the UTC times at which the offset changes, and the offsets before, between and after them."""
    changes, offsets = [], [_offset(zone, first)]
    for end in range(first + _WEEK, last + _WEEK, _WEEK):
        if (found := _offset(zone, end)) != offsets[-1]:
            low, high = end - _WEEK, end
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offsets[-1] else (low, middle)
            changes.append(high)
            offsets.append(found)
    return np.array(changes, dtype=np.int64), np.array(offsets, dtype=np.int64)


def _offset(zone: ZoneInfo, epoch: int) -> int:
    offset = datetime.fromtimestamp(epoch, UTC).astimezone(zone).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0
