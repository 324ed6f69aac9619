"""Moving averages."""

from __future__ import annotations

from openbell.charts.studies.study import (
    LONGEST,
    Category,
    Input,
    Study,
    factor,
    length,
    method,
    offset,
    plot,
    smoothing,
    source,
)
from openbell.indicators.spec import Setting

_T = Category.TREND
_PERIODS = ("firstPeriods", "secondPeriods", "thirdPeriods", "fourthPeriods", "fifthPeriods", "sixthPeriods")


def _average(
    short: str, title: str, default: int, indicator: str, *phrases: str, key: str = "", least: int = 1
) -> Study:
    """Returns a study of one line with a length, a source and an offset."""
    inputs = (length(default, key=key, least=least), source(), offset())
    return Study(short, title, _T, inputs, (plot(indicator, length="length"),), phrases, overlay=True)


def _several(short: str, title: str, defaults: tuple[int, ...], *phrases: str) -> Study:
    """Returns a study of several simple averages."""
    lengths = tuple(length(each, name, name) for each, name in zip(defaults, _PERIODS, strict=False))
    plots = tuple(plot("sma", length=each.name) for each in lengths)
    return Study(short, title, _T, (*lengths, method()), plots, phrases, overlay=True)


def _smoothed(short: str, title: str, indicator: str, *phrases: str) -> Study:
    """Returns a study of one average with a smoothing line."""
    inputs = (length(9, key="length"), source("source"), offset("offset"), *smoothing(9))
    return Study(short, title, _T, inputs, (plot(indicator, length="length"),), phrases, overlay=True)


def _switch(name: str, default: Setting) -> Input:
    return Input(name, default, description="use exponential averages", extra=True)


STUDIES = (
    _smoothed(
        "MA", "Moving Average", "sma", "moving average", "ma", "sma", "simple moving average", "simple ma", "dma"
    ),
    _smoothed("MAExp", "Moving Average Exponential", "ema_line", "ema", "exponential moving average", "exponential ma"),
    _average("MAWeighted", "Moving Average Weighted", 9, "wma", "wma", "weighted moving average", "weighted ma"),
    _several("MADouble", "Moving Average Double", (14, 21), "double moving average", "double ma"),
    _several("MATriple", "Moving Average Triple", (14, 21, 35), "triple moving average", "triple ma"),
    _several(
        "MAMultiple",
        "Moving Average Multiple",
        (14, 21, 35, 50, 100, 200),
        "multiple moving average",
        "multiple moving averages",
        "moving average ribbon",
        "ma ribbon",
    ),
    _average(
        "MAAdaptive",
        "Moving Average Adaptive",
        10,
        "kama",
        "kama",
        "adaptive moving average",
        "kaufman",
        "kaufman adaptive moving average",
        key="periods",
    ),
    _average(
        "MAHamming",
        "Moving Average Hamming",
        10,
        "hamming",
        "hamming moving average",
        "hamming ma",
        "hamming",
        key="periods",
    ),
    Study(
        "MAChannel",
        "Moving Average Channel",
        _T,
        (
            length(20, "upperLength"),
            length(20, "lowerLength"),
            offset(name="upperOffset", least=0),
            offset(name="lowerOffset", least=0),
        ),
        (
            plot(
                "ma_channel",
                upper_length="upperLength",
                lower_length="lowerLength",
                upper_offset="upperOffset",
                lower_offset="lowerOffset",
            ),
        ),
        ("ma channel",),
        overlay=True,
    ),
    _average("SmoothedMA", "Smoothed Moving Average", 7, "smma", "smma", "smoothed ma"),
    _average("HullMA", "Hull Moving Average", 9, "hma", "hma", "hull", "hull ma"),
    _average("DoubleEMA", "Double EMA", 9, "dema", "dema", "double exponential moving average"),
    _average("TripleEMA", "Triple EMA", 9, "tema", "tema", "triple exponential moving average"),
    _average("LeastSquaresMA", "Least Squares Moving Average", 25, "linreg", "lsma", "least squares ma", least=2),
    _average(
        "LinearRegressionCurve",
        "Linear Regression Curve",
        9,
        "linreg",
        "linear regression",
        "regression curve",
        "linreg",
        least=2,
    ),
    Study(
        "ALMA",
        "Arnaud Legoux Moving Average",
        _T,
        (length(9), factor("offset", 0.85, 0.0, 1.0), factor("sigma", 6.0, 0.1, 50.0)),
        (plot("alma", length="length", offset="offset", sigma="sigma"),),
        ("alma", "arnaud legoux"),
        overlay=True,
    ),
    _average("McGinleyDynamic", "McGinley Dynamic", 10, "mcginley", "mcginley"),
    Study("VWAP", "VWAP", _T, (), (plot("vwap"),), ("volume weighted average price",), overlay=True),
    _average("VWMA", "VWMA", 20, "vwma", "volume weighted moving average", "volume weighted ma"),
    Study(
        "MACross",
        "MA Cross",
        _T,
        (length(9, "shortLength"), length(26, "longLength")),
        (plot("sma", length="shortLength"), plot("sma", length="longLength")),
        ("moving average cross", "moving average crossover", "ma crossover"),
        overlay=True,
    ),
    Study(
        "MAWithEMACross",
        "MA with EMA Cross",
        _T,
        (length(10, "maLength"), length(10, "emaLength")),
        (plot("sma", length="maLength"), plot("ema_line", length="emaLength")),
        ("ma and ema cross", "ma ema cross"),
        overlay=True,
    ),
    Study(
        "WilliamsAlligator",
        "Williams Alligator",
        _T,
        (
            length(21, "jawLength"),
            length(13, "teethLength"),
            length(8, "lipsLength"),
            Input("jawOffset", 8, 0, LONGEST),
            Input("teethOffset", 5, 0, LONGEST),
            Input("lipsOffset", 3, 0, LONGEST),
        ),
        (
            plot(
                "alligator",
                jaw="jawLength",
                teeth="teethLength",
                lips="lipsLength",
                jaw_offset="jawOffset",
                teeth_offset="teethOffset",
                lips_offset="lipsOffset",
            ),
        ),
        ("alligator",),
        overlay=True,
    ),
)
