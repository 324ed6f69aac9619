"""Volume studies."""

from __future__ import annotations

from openbell.charts.studies.study import Category, Input, Study, length, plot, smoothing

_V = Category.VOLUME

STUDIES = (
    # Drawn below the price by the chart itself, not by an indicator.
    Study("Volume", "Volume", _V, phrases=("vol", "volumes", "volume bars", "trading volume"), overlay=True),
    Study(
        "VolumeOscillator",
        "Volume Oscillator",
        _V,
        (length(5, "shortLength"), length(10, "longLength")),
        (plot("volume_oscillator", short="shortLength", long="longLength"),),
        ("volume osc",),
    ),
    Study(
        "OBV",
        "On Balance Volume",
        _V,
        smoothing(9),
        (plot("obv"),),
        ("obv", "on-balance volume"),
    ),
    Study(
        "AccumulationDistribution",
        "Accumulation/Distribution",
        _V,
        (),
        (plot("ad"),),
        ("accumulation distribution", "a/d", "a/d line", "accumulation/distribution line", "adl"),
    ),
    Study("ChaikinMoneyFlow", "Chaikin Money Flow", _V, (length(20),), (plot("cmf", length="length"),), ("cmf",)),
    Study(
        "ChaikinOscillator",
        "Chaikin Oscillator",
        _V,
        (length(3, "fastLength"), length(10, "slowLength")),
        (plot("chaikin", fast="fastLength", slow="slowLength"),),
        ("chaikin", "chaikin osc"),
    ),
    Study("PriceVolumeTrend", "Price Volume Trend", _V, (), (plot("pvt"),), ("pvt", "price and volume trend")),
    Study(
        "EaseOfMovement",
        "Ease of Movement",
        _V,
        (Input("divisor", 10_000, 1, 10**9), length(14)),
        (plot("ease_of_movement", divisor="divisor", length="length"),),
        ("eom", "emv"),
    ),
    Study(
        "EldersForceIndex",
        "Elder's Force Index",
        _V,
        (length(13),),
        (plot("force", length="length"),),
        ("efi", "force index", "elder force index", "elders force index"),
    ),
    Study("NetVolume", "Net Volume", _V, (), (plot("net_volume"),)),
    Study(
        "KlingerOscillator", "Klinger Oscillator", _V, (), (plot("klinger"),), ("klinger", "klinger volume oscillator")
    ),
)
