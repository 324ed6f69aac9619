"""Finds the timeframe of bars by the spacing of their times. Nights, weekends, holidays and missing bars are allowed for."""

from __future__ import annotations

import numpy as np

from openbell.desk.importing.keys import session_days
from openbell.market.bars import MINUTE
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass
from openbell.market.session_table import Times
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.market.trading_days import currency_days_at

_HOUR, _DAY = 3600, 86400
_CHANCE = 1000
"""A longer timeframe is certain if minute bars would have its spacing by chance in at most one of so many files."""
_MOST = 0.9
"""The share of gaps that must be multiples of the usual one, if some are not."""
_MANY = 20
_BY_LENGTH = {each.seconds: each for each in SHORT.values()}
_TAKEN = f"import takes {', '.join(SHORT)}"
_LONG = ((27, 32, "monthly"), (88, 93, "quarterly"), (360, 372, "yearly"))
"""Days between the bars of timeframes that are not taken."""


class UnclearTimeframe(InvalidParameter):
    """Rows are too few to show their timeframe. `fallback` is what they are taken for if nothing else shows it."""

    def __init__(self, message: str, fallback: Timeframe | None = None) -> None:
        super().__init__(message)
        self.fallback = fallback


def detect(times: Times, days: Times, dates: bool, market: AssetClass) -> Timeframe:
    """Returns the timeframe of bars at these times, all of one file.

    `times` are UTC times and `days` are the local dates as days since 1970. Raises `InvalidParameter` if the spacing is that
    of no timeframe, `UnclearTimeframe` if it can be that of several.
    """
    if not len(times):
        return Timeframe.D1 if dates else Timeframe.M1
    times = _distinct(times)
    if not dates and _once_a_day(times):
        # Days of forex begin on the date before theirs.
        return _days_or_weeks(
            _distinct(days if market is not AssetClass.FOREX else currency_days_at(times, 4 * _DAY)), market
        )
    if dates:
        return _days_or_weeks(_distinct(days), market)
    return _intraday(times)


def _distinct(values: Times) -> Times:
    """Returns the sorted values without repeats; at once if they already are."""
    if bool((values[1:] > values[:-1]).all()):
        return values
    values = np.sort(values)
    kept: Times = values[np.append(True, values[1:] != values[:-1])]
    return kept


def _once_a_day(times: Times) -> bool:
    """Returns True if the times are at least 20 hours apart and at one time of day, allowing for summer time."""
    if len(times) < 2 or int(np.diff(times).min()) < 20 * _HOUR:
        return False
    apart = (times - times[0]) % _DAY
    return bool(np.isin(apart, (0, _HOUR, _DAY - _HOUR)).all())


def _days_or_weeks(days: Times, market: AssetClass) -> Timeframe:
    if len(days) < 2:
        raise UnclearTimeframe(_one_bar(), Timeframe.D1)
    calendar = np.diff(days)
    usual = float(np.median(calendar))
    trading = np.diff(_trading_index(days, market))
    # The last row of a weekly or monthly file may be of the day after the one before, so the usual distance counts too.
    if int(trading.max()) <= 1 or (int(trading.min()) <= 1 and usual <= 4):
        return Timeframe.D1
    weeks = np.diff(_distinct((days + 3) // 7))
    if 5 <= usual <= 9 and int(weeks.min()) == 1:
        if len(days) == 2:
            raise _two_bars(int(calendar[0]) * _DAY, Timeframe.W1)
        return Timeframe.W1
    kind = next((f"{name} bars" for low, high, name in _LONG if low <= usual <= high), "")
    least = _duration(int(calendar.min()) * _DAY)
    if kind:
        raise InvalidParameter(f"holds {kind}: {_TAKEN}")
    raise UnclearTimeframe(
        f"holds bars that are {least} apart or more, none closer: {_TAKEN}; "
        "if they are days with gaps, add --timeframe 1d"
    )


def _trading_index(days: Times, market: AssetClass) -> Times:
    """Returns numbers for dates that differ by 1 for two trading days in a row."""
    if market is AssetClass.CRYPTO:
        return days
    if market is AssetClass.STOCK and len(sessions := session_days(int(days[0]), int(days[-1]))):
        return np.searchsorted(sessions, days) + np.where(days < sessions[0], days - sessions[0], 0)
    week, day = np.divmod(days + 3, 7)  # 1970-01-01 was a Thursday
    return week * 5 + np.minimum(day, 5)


def _intraday(times: Times) -> Timeframe:
    gaps = np.diff(times)
    if len(gaps) and int(np.count_nonzero(gaps == MINUTE)) * 2 >= len(gaps):
        return Timeframe.M1
    whole, least = (int(np.gcd.reduce(gaps)), int(gaps.min())) if len(gaps) else (_DAY, _DAY)
    lengths, counts = np.unique(gaps, return_counts=True)
    usual = int(lengths[counts.argmax()]) if len(gaps) else whole
    if usual > whole and _mostly(gaps, usual):
        return _despite_others(times, usual, least)
    minutes = whole // MINUTE
    if minutes <= 1:
        return Timeframe.M1
    found = _BY_LENGTH.get(whole)
    aligned = not (times % min(whole, _DAY)).any()
    if len(gaps) and not are_of_chance(minutes, len(gaps) + aligned):
        if whole != least:
            raise UnclearTimeframe(
                f"holds bars at multiples of {_duration(whole)}, the closest of them {_duration(least)} apart, so the "
                f"timeframe cannot be told: add --timeframe ({', '.join(SHORT)})"
            )
        if found is None:
            raise _odd(whole)
        if len(times) == 2:
            raise _two_bars(whole, found)
        return found
    possible = [each for each in SHORT.values() if not whole % each.seconds and not (times % each.seconds).any()]
    if possible == [Timeframe.M1]:
        return Timeframe.M1
    if len(times) == 1:
        raise UnclearTimeframe(_one_bar())
    if found is None or whole != least:
        raise UnclearTimeframe(
            f"holds {len(times)} bars at multiples of {_duration(whole)}, so the timeframe cannot be told: "
            f"add --timeframe ({', '.join(name_of(each, SHORT) for each in possible)})"
        )
    name = name_of(found, SHORT)
    raise UnclearTimeframe(
        f"holds {len(times)} bars {_duration(whole)} apart, which can be {name} bars (--timeframe {name}) "
        "or minutes with gaps (--timeframe 1m)"
    )


def are_of_chance(longer: int, count: int) -> bool:
    """Returns True if so many bars may have the spacing of a timeframe by chance that is `longer` times theirs."""
    return bool(longer ** min(count, 12) < _CHANCE)


def _one_bar() -> str:
    return f"holds one bar, so the timeframe cannot be told: add --timeframe ({', '.join(SHORT)})"


def _two_bars(apart: int, found: Timeframe) -> UnclearTimeframe:
    name = name_of(found, SHORT)
    return UnclearTimeframe(
        f"holds 2 bars {_duration(apart)} apart, which can be {name} bars (--timeframe {name}) or smaller ones with gaps: "
        f"add --timeframe ({', '.join(SHORT)})",
        found,
    )


def _odd(seconds: int) -> InvalidParameter:
    return InvalidParameter(
        f"holds bars of {_duration(seconds)}: {_TAKEN}; if they are minutes with gaps, add --timeframe 1m"
    )


def _mostly(gaps: Times, usual: int) -> bool:
    return len(gaps) >= _MANY and float(np.mean(gaps % usual == 0)) >= _MOST


def _despite_others(times: Times, usual: int, least: int) -> Timeframe:
    """Returns the usual spacing, if all others are larger. Raises `InvalidParameter` if some bars lie between the others."""
    found = _BY_LENGTH.get(usual)
    if found is None:
        raise _odd(usual)
    if least >= usual:
        return found
    between = times[np.flatnonzero(np.diff(times) < usual)[0] + 1]
    raise InvalidParameter(
        f"holds bars of {_duration(usual)}, but also one at {np.datetime64(int(between), 's')}Z, {_duration(least)} after "
        "another: remove it, or add --timeframe 1m if all bars are minutes"
    )


def _duration(seconds: int) -> str:
    for unit, name in ((_DAY, "day"), (_HOUR, "hour"), (MINUTE, "minute")):
        if seconds % unit == 0:
            count = seconds // unit
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds} seconds"
