"""Recognises style, theme, size, scale and session of a chart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import floor

from openbell.charts.choices import LARGEST, MOST_PIXELS
from openbell.charts.config.choices import LEAST_HEIGHT, LEAST_WIDTH
from openbell.charts.language.instruments.named import words as listed
from openbell.charts.language.spans import Detection, Phrases
from openbell.charts.language.words import Word


@dataclass(frozen=True, slots=True)
class LookFound:
    """Fields of a config that a phrase sets."""

    fields: tuple[tuple[str, str | int], ...]


def _look(**fields: str | int) -> LookFound:
    return LookFound(tuple(fields.items()))


_STYLES = {
    "candle": ("candle, candlestick, japanese candle, japanese candlestick, candle chart, candlestick chart"),
    "bar": "ohlc bars, bar chart, ohlc, ohlc chart, bar style, bars chart, as bars, with bars",
    "line": ("line, line chart, line graph, line style, as a line, as line, simple line, closing line, line plot"),
    "area": ("area chart, area graph, area style, as area, as an area, filled area, mountain chart, area"),
    "heikinAshi": "heikin ashi, heikin ashi candles, heiken ashi candles, heikinashi, heiken ashi, ha candles",
    "hollowCandle": "hollow candles, hollow candle, hollow candlesticks, hollow",
    "baseline": "baseline, baseline chart, base line chart",
    "hiLo": "hilo, hi lo, high low, high-low, high low chart, hi-lo chart, high low bars, hilo chart",
    "column": "columns, column chart, column, as columns, histogram chart",
}
_THEMES = {
    "dark": (
        "dark, dark mode, dark theme, black background, night mode, dark background, dark colours, dark colors, in "
        "dark, on black"
    ),
    "light": (
        "light, light mode, light theme, white background, day mode, light background, bright theme, on white, in light"
    ),
}
_SCALES = {
    "logarithmic": "log scale, logarithmic, logarithmic scale, log chart, log, log axis, log price scale",
    "percent": (
        "percent scale, percentage scale, in percent, percent, percentage, per cent scale, % scale, in percentage "
        "terms, as percentages, percentage change"
    ),
    "indexedTo100": (
        "indexed to 100, index to 100, indexed, rebased to 100, rebased, normalised to 100, normalized to 100, base 100"
    ),
    "regular": "linear scale, regular scale, arithmetic scale, linear, linear axis",
}
_SESSIONS = {
    "extended": (
        "extended hours, extended session, extended trading hours, pre and post market, premarket and after hours, "
        "pre market and after hours, premarket, after hours, pre market, post market, extended trading, pre and "
        "after market, outside regular hours"
    ),
    "regular": "regular hours, regular session, regular trading hours, rth, regular trading session",
}
_SIZES = {
    (1920, 1080): "full hd, fhd, 1080p, full-hd",
    (1280, 720): "hd, 720p",
    (2048, 1152): "2k",
}
_TABLE = Phrases(
    (phrase.replace("-", " ").split(), look)
    for entries in (
        [(_look(style=name), phrases) for name, phrases in _STYLES.items()],
        [(_look(theme=name), phrases) for name, phrases in _THEMES.items()],
        [(_look(scale=name), phrases) for name, phrases in _SCALES.items()],
        [(_look(session=name), phrases) for name, phrases in _SESSIONS.items()],
        [(_look(width=size[0], height=size[1]), phrases) for size, phrases in _SIZES.items()],
    )
    for look, phrases in entries
    for phrase in listed(phrases)
)
SQUARE = _look(width=800, height=800)
"""The size of `square` without a number."""
_X = frozenset({"x", "×", "by", "*"})
_JOINED = re.compile(r"x(\d{2,4})")


def looks_in(words: Sequence[Word]) -> Iterator[Detection[LookFound]]:
    """Yields the phrases about the look of a chart."""
    for at, word in enumerate(words):
        if (found := _TABLE.at(words, at)) is not None:
            end, look = found
            is_level = end == at + 1 and word.text == "line" and end < len(words) and words[end].text in {"at", "@"}
            if not is_level:  # a line at a price that cannot be drawn is no style
                yield Detection(at, end, look, rank=3)
        if word.value is not None:
            yield from _size(words, at)
        elif word.text == "square":
            yield Detection(at, at + 1, SQUARE, rank=3)
            yield from _side(words, at)
        elif word.text in {"width", "wide", "height", "tall", "high", "square"}:
            yield from _side(words, at)


def _size(words: Sequence[Word], at: int) -> Iterator[Detection[LookFound]]:
    """Yields `1920x1080`, `1920 x 1080`, `1920 by 1080`."""
    first = words[at]
    if first.money or first.value is None:
        return
    second, end = None, at
    if first.text == "x" and at + 1 < len(words):
        second, end = words[at + 1], at + 2
    elif not first.text and at + 2 < len(words) and words[at + 1].text in _X and not words[at + 1].is_number:
        second, end = words[at + 2], at + 3
    elif not first.text and at + 1 < len(words) and (joined := _JOINED.fullmatch(words[at + 1].text)):
        yield Detection(at, at + 2, _look(width=int(first.value), height=int(joined[1])), bonus=1.0)
        return
    if second is not None and _is_pixels(second) and 100 <= first.value == int(first.value):
        if end < len(words) and words[end].text in {"px", "pixel", "pixels"}:
            end += 1
        yield Detection(at, end, _look(width=int(first.value), height=int(second.value or 0)), bonus=1.0)


def _side(words: Sequence[Word], at: int) -> Iterator[Detection[LookFound]]:
    """Yields `width 1600`, `1600 pixels wide`, `square 800`."""
    text = words[at].text
    name = "height" if text in {"height", "tall", "high"} else "width"
    after = at + 1
    while after < len(words) and words[after].text in {"of", "=", ":", "is"} and not words[after].is_number:
        after += 1
    if text in {"width", "height", "square"} and after < len(words) and _is_pixels(words[after]):
        value = int(words[after].value or 0)
        look = _look(width=value, height=value) if text == "square" else _look(**{name: value})
        yield Detection(at, after + 1, look)
    before = at - 1
    if before >= 0 and words[before].text in {"px", "pixel", "pixels"} and not words[before].is_number:
        before -= 1
    if text != "width" and before >= 0 and _is_pixels(words[before]):
        value = int(words[before].value or 0)
        look = _look(width=value, height=value) if text == "square" else _look(**{name: value})
        yield Detection(before, at + 1, look)


def _is_pixels(word: Word) -> bool:
    return (
        word.value is not None and not word.money and word.text in {"", "px", "pixels"} and 100 <= word.value <= 99_999
    )


def fitted(width: int, height: int) -> tuple[int, int, str]:
    """Returns a size within what can be drawn, and a warning if it was changed."""
    share = min(1.0, (MOST_PIXELS / (width * height)) ** 0.5)
    fit = (
        max(LEAST_WIDTH, min(LARGEST, floor(width * share))),
        max(LEAST_HEIGHT, min(LARGEST, floor(height * share))),
    )
    if fit == (width, height):
        return width, height, ""
    return *fit, f"{width}x{height} cannot be drawn; {fit[0]}x{fit[1]} is used"


def read_resolution(text: str) -> tuple[int, int] | None:
    """Returns the sides of a resolution such as 1920x1080; None if it is none."""
    found = re.fullmatch(r"\s*(\d{2,5})\s*[xX×*]\s*(\d{2,5})\s*", text)
    return (int(found[1]), int(found[2])) if found else None


def look_words() -> frozenset[str]:
    """Every word of a phrase about the look of a chart."""
    return _TABLE.vocabulary
