"""Whether the bars of a file are minutes at all: daily or hourly bars stored as minutes would be wrong without a word."""

from __future__ import annotations

import numpy as np

from openbell.market.bars import MINUTE, Bars
from openbell.market.errors import InvalidParameter

_HOUR, _DAY = 3600, 86400
_PARTS_OF_AN_HOUR = (2, 3, 5, 10, 15, 20, 30, 45)
"""The lengths in minutes, shorter than an hour, in which bars are sold and saved."""
_CHANCE = 1000
"""How unlikely it must be that the times of true minute bars fall so by accident: one in so many."""


def refuse_larger(bars: Bars, named: bool = False) -> None:
    """Raise `InvalidParameter` if sorted bars are longer than a minute by their spacing.

    Minutes may be missing, sessions and nights included: bars are longer only if every one of them is a whole number of
    hours, or of a usual part of an hour, after the one before. `named`: a person has said that these are minutes, which
    is believed of everything but whole days.
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
        f"holds bars that are {_said(least)} apart or more, none closer, so they are no minute bars: "
        f"import takes minute bars (1min) and builds larger ones from them{hint}"
    )


def _is_part_of_an_hour(whole: int, least: int, times: int) -> bool:
    """`times` is how often the spacing is confirmed."""
    minutes = whole // MINUTE
    return whole == least and minutes in _PARTS_OF_AN_HOUR and minutes**times >= _CHANCE


def _said(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (MINUTE, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"a{'n' if name == 'hour' else ''} {name}" if count == 1 else f"{count} {name}s"
    return f"{seconds} seconds"
