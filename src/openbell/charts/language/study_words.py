"""The words by which sentences name studies, and those by which they name inputs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from openbell.charts.language.spans import Phrases, text_of
from openbell.charts.language.words import words_of
from openbell.charts.studies.catalogue import all_studies
from openbell.charts.studies.study import Input, Study

GENERIC = frozenset({"average", "index", "oscillator", "indicator"})
"""Words that name no study by themselves."""
LENGTHS = frozenset("length period periods window lookback bar bars candle candles day days d week weeks w p".split())
"""Words between a number and a study: `14 period RSI`, `200 day moving average`."""
_INPUT_WORDS = {
    "fast": ("fastLength", "shortLength"),
    "short": ("shortLength", "fastLength"),
    "slow": ("slowLength", "longLength"),
    "long": ("longLength", "slowLength"),
    "middle": ("middleLength",),
    "signal": ("signalLength",),
    "std": ("stdDev", "deviations"),
    "stdev": ("stdDev", "deviations"),
    "stddev": ("stdDev", "deviations"),
    "sd": ("stdDev", "deviations"),
    "sigma": ("sigma", "stdDev"),
    "deviation": ("stdDev", "deviations", "deviation"),
    "deviations": ("stdDev", "deviations", "deviation"),
    "multiplier": ("multiplier", "atrMultiplier"),
    "mult": ("multiplier", "atrMultiplier"),
    "factor": ("multiplier", "atrMultiplier"),
    "length": ("length",),
    "period": ("length", "periods"),
    "periods": ("length", "periods"),
    "window": ("length",),
    "lookback": ("length",),
    "k": ("kLength", "k"),
    "d": ("dSmoothing", "d"),
    "smoothing": ("kSmoothing", "smoothing", "smoothingLength"),
    "rows": ("rows",),
    "bins": ("rows",),
    "conversion": ("conversionLength",),
    "base": ("baseLength",),
    "span": ("spanLength",),
    "start": ("start",),
    "step": ("increment",),
    "increment": ("increment",),
    "max": ("maximum",),
    "maximum": ("maximum",),
    "depth": ("depth",),
    "offset": ("offset",),
    "percent": ("upper",),
    "jaw": ("jawLength",),
    "teeth": ("teethLength",),
    "lips": ("lipsLength",),
    "limit": ("limit",),
    "divisor": ("divisor",),
}


def input_named(study: Study, word: str) -> Input | None:
    """Returns the input of a study that a word names."""
    inputs = {each.name: each for each in study.inputs}
    return next((inputs[name] for name in _INPUT_WORDS.get(word, ()) if name in inputs), None)


@cache
def joined_names() -> frozenset[str]:
    """Names of one word, to which a length may be joined: rsi14, sma50."""
    return frozenset(phrase[0] for _, phrase in _entries() if len(phrase) == 1 and phrase[0].isalpha())


@cache
def panel_names() -> frozenset[str]:
    """Names of one word of studies that are not drawn over the price."""
    return frozenset(phrase[0] for study, phrase in _entries() if len(phrase) == 1 and not study.overlay)


@cache
def study_phrases() -> Phrases[Study]:
    """The phrases of all studies."""
    return Phrases((phrase, study) for study, phrase in _entries())


def _entries() -> Iterator[tuple[Study, tuple[str, ...]]]:
    for study in all_studies().values():
        texts = {study.title, study.display_name, *study.phrases}
        for text in texts:
            words = tuple(text_of(word) for word in words_of(text) if word.text != "/")
            whole = tuple(text_of(word) for word in words_of(text))
            for phrase in sorted({words, whole}):
                yield study, phrase


def is_average(study: Study) -> bool:
    """Returns True if several numbers ask for several lines: `EMA 20 and 50`."""
    lengths = [each for each in study.inputs if not each.extra]
    return study.overlay and len(lengths) == 1 and lengths[0].name == "length"
