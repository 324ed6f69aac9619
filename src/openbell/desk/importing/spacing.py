"""Checks that the bars of a file are minutes: daily or hourly bars must not be stored as minutes."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import InvalidParameter

_HOUR, _DAY = 3600, 86400
_PARTS_OF_AN_HOUR = (2, 3, 5, 10, 15, 20, 30, 45)
"""The usual timeframes between a minute and an hour, in minutes."""
_CHANCE = 1000
"""Bars are refused if minute bars would have their spacing by chance in at most one of so many files."""


def refuse_longer(bars: Bars, named: bool = False) -> None:
    """Raise `InvalidParameter` if the spacing of sorted bars is that of a timeframe longer than a minute.

    Minutes may be missing, so all gaps must be multiples of an hour or of a usual timeframe. With `named` the user has
    stated that the bars are minutes; then only whole days are refused.
    """
    if len(bars) < 2:
        return
    steps = np.diff(bars.time)
    whole, least = int(np.gcd.reduce(steps)), int(steps.min())
    aligned = not (bars.time % min(whole, _DAY)).any()
    days = aligned and whole % _DAY == 0
    hours = whole % _HOUR == 0 and (aligned or not (bars.time % _HOUR).any() or len(bars) > 2)
    if not days and (named or not (hours or _is_part_of_an_hour(whole, least, len(bars) - 1 + aligned))):
        return
    hint = "" if days else "; if they are minutes with gaps, say so with --timeframe 1min"
    raise InvalidParameter(
        f"holds bars that are {_duration(least)} apart or more, none closer, so they are no minute bars: "
        f"import takes minute bars (1min) and builds larger ones from them{hint}"
    )


def _is_part_of_an_hour(whole: int, least: int, times: int) -> bool:
    """Returns True if a usual timeframe is too unlikely to be a coincidence; `times` gaps confirm it."""
    minutes = whole // MINUTE
    return whole == least and minutes in _PARTS_OF_AN_HOUR and minutes**times >= _CHANCE


def _duration(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (MINUTE, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"a{'n' if name == 'hour' else ''} {name}" if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"
