"""Converts local times of a time zone into UTC, many at once."""

from __future__ import annotations

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


def zone_of(name: str) -> ZoneInfo:
    """Returns a time zone by its IANA name. Raises `InvalidParameter`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder of the database
        from zoneinfo import available_timezones

        hint = did_you_mean(name, available_timezones())
        raise InvalidParameter(
            f"{name[:40]!r} is not a time zone: use a name such as America/New_York or UTC{hint}"
        ) from None


def to_utc(local: Times, zone: ZoneInfo) -> tuple[Times, Mask, Mask]:
    """Returns UTC times, a mask of local times that do not exist, and a mask of those that exist twice.

    Both occur once a year where summer time begins and ends. A time that exists twice is converted as the first one.
    """
    none = np.zeros(len(local), dtype=bool)
    if not len(local) or zone.key in {"UTC", "Etc/UTC", "GMT"}:
        return local, none, none
    first = max(int(local.min()) - 2 * 86400, _EARLIEST) // _YEAR * _YEAR
    last = -(-min(int(local.max()) + 2 * 86400, _LATEST) // _YEAR) * _YEAR
    changes, offsets = _changes(zone, first, max(last, first + _YEAR))
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
