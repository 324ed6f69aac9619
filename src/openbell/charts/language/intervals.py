"""Recognises the length of bars: "15 minute", "4h", "weekly", "1 month candles"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from openbell.charts.config.choices import INTERVALS
from openbell.charts.language.instruments.named import words as listed
from openbell.charts.language.spans import Detection, Phrases
from openbell.charts.language.words import DAY, HOUR, MINUTE, MONTH, WEEK, YEAR, Word, counted_at
from openbell.market.timeframes import CHART


@dataclass(frozen=True, slots=True)
class IntervalFound:
    """An interval of configs."""

    interval: str
    asked: str = ""
    """What the sentence asks for, if there is no such interval."""


_BARS = frozenset("candle candles candlestick candlesticks bar bars interval intervals timeframe tf".split())
"""Words after which any unit is the length of a bar."""
_CHARTS = frozenset({"chart", "charts", "graph"})
"""Words after which minutes and hours are the length of a bar."""
_PHRASES = {
    "1m": "minute chart, minute candles, minute bars, minutely, every minute",
    "30m": "half hourly, half hour, half an hour",
    "1h": "hourly, every hour, hour chart, hour candles",
    "1D": "daily, every day, day by day",
    "1W": "weekly, every week, week by week",
    "1M": "monthly, every month, month by month",
    "3M": "quarterly",
    "1Y": "yearly, annual, annually",
}
_TABLE = Phrases((text.split(), IntervalFound(name)) for name, texts in _PHRASES.items() for text in listed(texts))
_METATRADER = {
    **{f"m{name[:-1]}": name for name in CHART if name.endswith("m")},
    **{f"h{name[:-1]}": name for name in CHART if name.endswith("h") and name not in {"1h", "2h", "3h"}},
    "d1": "1D",
    "w1": "1W",
    "mn1": "1M",
}
_CODES = frozenset({(1, DAY), (2, DAY), (3, DAY), (1, WEEK)})
"""Codes that are intervals: 1D, 2D, 3D, 1W. Other days and weeks are ranges."""
_SUFFIXES = {
    MINUTE: "m",
    HOUR: "h",
    DAY: "D",
    WEEK: "W",
    MONTH: "M",
    YEAR: "Y",
}
_SECONDS = {
    MINUTE: 60,
    HOUR: 3600,
    DAY: 86400,
    WEEK: 604800,
    MONTH: 2592000,
    YEAR: 31536000,
}
_BEFORE = frozenset({"interval", "timeframe", "tf", "candles", "bars", "resolution"})


def intervals_in(words: Sequence[Word]) -> Iterator[Detection[IntervalFound]]:
    """Yields intervals."""
    for at, word in enumerate(words):
        if (found := _TABLE.at(words, at)) is not None:
            end, meaning = found
            yield Detection(at, _after_bars(words, end), meaning)
        if word.text in _METATRADER and not word.is_number:
            yield Detection(at, at + 1, IntervalFound(_METATRADER[word.text]))
        if word.is_number:
            yield from _counted(words, at)


def _after_bars(words: Sequence[Word], at: int) -> int:
    return at + 1 if at < len(words) and words[at].text in _BARS else at


def _counted(words: Sequence[Word], at: int) -> Iterator[Detection[IntervalFound]]:
    if (found := counted_at(words, at)) is None:
        return
    after, count, unit, is_code = found
    follows = words[after].text if after < len(words) else ""
    is_short = unit in {MINUTE, HOUR}
    start, told = _told(words, at)
    if follows in _BARS or told:
        yield Detection(start, _after_bars(words, after), _interval(count, unit), bonus=0.5)
    elif (is_short and (count, unit) != (24, HOUR)) or (is_code and (count, unit) in _CODES):
        end = after + 1 if follows in _CHARTS else after
        yield Detection(at, end, _interval(count, unit), rank=1)


def _told(words: Sequence[Word], at: int) -> tuple[int, bool]:
    """Returns where `interval of 15 minutes` begins, and whether a word before the number asks for an interval."""
    place = at - 1
    while place >= 0 and words[place].text in {"of", "is", "=", ":", "at", "to"} and not words[place].is_number:
        place -= 1
    if place >= 0 and words[place].text in _BEFORE and not words[place].is_number:
        return place, True
    return at, False


def _interval(count: int, unit: str) -> IntervalFound:
    """Returns the interval of so many units; if there is none, the next finer one."""
    if unit == MINUTE and count % 60 == 0:
        count, unit = count // 60, HOUR
    for number, small, large in (
        (24, HOUR, DAY),
        (7, DAY, WEEK),
        (12, MONTH, YEAR),
    ):
        if unit == small and count == number:
            count, unit = 1, large
    name = f"{count}{_SUFFIXES[unit]}"
    if name in INTERVALS:
        return IntervalFound(name)
    seconds = count * _SECONDS[unit]
    finer = [each for each in INTERVALS if CHART[each].seconds <= seconds]
    return IntervalFound(finer[-1] if finer else INTERVALS[0], name)
