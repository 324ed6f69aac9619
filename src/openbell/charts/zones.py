"""Time zones of charts: found by name, and as they are written below a chart."""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean

_UTC = ("Etc/UTC", "UTC")
_SHOWN = 80


@cache
def zone_names() -> dict[str, str]:
    """Returns the name of every time zone by its name in lower case."""
    return {name.lower(): name for name in available_timezones()}


def zone_called(name: str) -> tzinfo:
    """Returns the time zone with this name, such as Asia/Tokyo, in any case.

    Raises `InvalidParameter` with the closest name if there is none.
    """
    if name in _UTC:
        return UTC
    found = zone_names().get(name.lower())
    if found is None:
        raise InvalidParameter(
            f"timezone must be a name such as America/New_York, not {name[:_SHOWN]!r}{zone_advice(name)}"
        )
    return UTC if found in _UTC else ZoneInfo(found)


def zone_advice(name: str) -> str:
    """Returns a hint with the time zone whose name, or whose city, is closest; empty if none is close."""
    wanted = name[:_SHOWN].strip().replace(" ", "_")
    cities = {each.rpartition("/")[2].lower(): each for each in sorted(zone_names().values())}
    if found := cities.get(wanted.lower()):
        return f"; did you mean {found!r}?"
    return did_you_mean(wanted, zone_names().values())


def zone_text(zone: tzinfo) -> str:
    """Returns a zone as it is written on a chart: UTC, or its city."""
    name = str(zone)
    return "UTC" if name in _UTC else name.rpartition("/")[2].replace("_", " ")
