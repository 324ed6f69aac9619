"""Words for units of time, shared by ranges, intervals and lengths of studies."""

from __future__ import annotations

from collections.abc import Sequence

from openbell.charts.language.words import Word

MINUTE, HOUR, DAY, WEEK, MONTH, YEAR = "MIN", "H", "D", "W", "M", "Y"
UNITS = {
    **dict.fromkeys(("minute", "minutes", "min", "mins"), MINUTE),
    **dict.fromkeys(("hour", "hours", "hr", "hrs", "h"), HOUR),
    **dict.fromkeys(("day", "days", "d"), DAY),
    **dict.fromkeys(("week", "weeks", "wk", "wks", "w"), WEEK),
    **dict.fromkeys(("month", "months", "mo", "mos", "mth"), MONTH),
    **dict.fromkeys(("year", "years", "yr", "yrs", "y"), YEAR),
}
"""Units by their words. A single `m` is a minute in lower case and a month in capitals: see `unit_of_suffix`."""


def unit_of_suffix(suffix: str, *, caps: bool) -> str | None:
    """Returns the unit of a number's suffix, such as `m` in 15m and `M` in 6M."""
    if suffix == "m":
        return MONTH if caps else MINUTE
    return UNITS.get(suffix)


def written(count: int, unit: str) -> str:
    """Returns a length of time as configs write it: 7D, 1M for 30 days, 1D for 24 hours, 1Y for 12 months."""
    if unit == WEEK:
        count, unit = count * 7, DAY
    if unit == MINUTE and count % 60 == 0:
        count, unit = count // 60, HOUR
    if unit == HOUR and count % 24 == 0:
        count, unit = count // 24, DAY
    if unit == DAY and count == 30:
        count, unit = 1, MONTH
    if unit == MONTH and count % 12 == 0:
        count, unit = count // 12, YEAR
    return f"{count}{unit}"


def counted_at(words: Sequence[Word], at: int) -> tuple[int, int, str, bool] | None:
    """Returns the index after a number with a unit (`7 days`, `15m`), the number, the unit, and whether it is a code."""
    word = words[at]
    if word.value is None or word.money or word.value != int(word.value) or not 1 <= word.value <= 99_999:
        return None
    if word.text:
        unit = unit_of_suffix(word.text, caps=word.caps)
        return None if unit is None else (at + 1, int(word.value), unit, True)
    if at + 1 >= len(words) or words[at + 1].is_number:
        return None
    unit = unit_of_suffix(words[at + 1].text, caps=words[at + 1].caps)
    return None if unit is None else (at + 2, int(word.value), unit, False)
