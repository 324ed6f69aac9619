"""Volatility studies."""

from __future__ import annotations

from openbell.charts.studies.study import Category, Input, Study, factor, length, plot

_V = Category.VOLATILITY
_DAYS = Input("daysPerYear", 252, 1, 366, key="daysPerYear", description="trading days of a year")

STUDIES = (
    Study("ATR", "Average True Range", _V, (length(14),), (plot("atr", length="length"),), ("atr", "true range")),
    Study(
        "HistoricalVolatility",
        "Historical Volatility",
        _V,
        (length(10, least=2),),
        (plot("histvol", length="length", fixed={"convention": "tradingview"}),),
        ("hv", "histvol", "realized volatility", "realised volatility"),
    ),
    Study(
        "StandardDeviation",
        "Standard Deviation",
        _V,
        (length(5, key="periods"), factor("deviations", 1.0, 0.1, 10.0, key="deviations")),
        (plot("std_dev", length="length", deviations="deviations"),),
        ("stdev", "std dev", "stddev"),
    ),
    Study(
        "StandardError",
        "Standard Error",
        _V,
        (length(14, key="length", least=3),),
        (plot("std_error", length="length"),),
        ("std error",),
    ),
    Study(
        "ChaikinVolatility",
        "Chaikin Volatility",
        _V,
        (length(10, key="periods"), length(10, "rocLength", "rocLookback")),
        (plot("chaikin_volatility", length="length", roc_length="rocLength"),),
    ),
    Study(
        "VolatilityCloseToClose",
        "Volatility Close-to-Close",
        _V,
        (length(10, key="periods", least=2), _DAYS),
        (plot("volatility_close", length="length", days="daysPerYear"),),
        ("close-to-close volatility", "close to close volatility", "volatility close to close"),
    ),
    Study(
        "VolatilityOHLC",
        "Volatility O-H-L-C",
        _V,
        (
            length(10, key="in_0"),
            Input("marketClosed", 0, 0, 0, key="in_1", extra=True),
            Input("daysPerYear", 252, 1, 366, key="in_2"),
        ),
        (plot("volatility_ohlc", length="length", days="daysPerYear"),),
        ("ohlc volatility", "volatility ohlc", "o-h-l-c volatility"),
    ),
    Study(
        "VolatilityZeroTrend",
        "Volatility Zero Trend Close-to-Close",
        _V,
        (length(10), Input("daysPerYear", 252, 1, 366)),
        (plot("volatility_zero_trend", length="length", days="daysPerYear"),),
        ("zero trend volatility", "volatility zero trend", "volatility zero trend close to close"),
    ),
    Study(
        "VolatilityIndex",
        "Volatility Index",
        _V,
        (
            length(10, key="periods"),
            factor("atrMultiplier", 3.0, key="atrMult"),
            Input("method", "Wilder Smoothing", choices=("Wilder Smoothing",), key="method", extra=True),
        ),
        (plot("volatility_index", length="length", multiplier="atrMultiplier"),),
        ("wilder volatility index",),
    ),
    Study("ChopZone", "Chop Zone", _V, (), (plot("chop_zone"),)),
    Study(
        "ChoppinessIndex",
        "Choppiness Index",
        _V,
        (length(14, least=2),),
        (plot("choppiness", length="length"),),
        ("choppiness", "chop", "chop index"),
    ),
)
