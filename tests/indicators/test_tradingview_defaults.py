"""The page of indicators names every default that is not TradingView's; the studies of chart configs have the vendor's."""

from __future__ import annotations

from openbell.charts.studies.catalogue import all_studies
from openbell.indicators.registry import all_indicators, get

OTHER_VERSIONS = {
    ("Keltner Channels", "multiplier"): 1.0,
    ("Linear Regression Curve", "length"): 9,
    ("MA with EMA Cross", "length"): 10,
}
"""Defaults of studies that are not those of TradingView's built-in indicator of the same kind: its charting library has
another one, or the study is another view of the indicator."""
BUILT_IN: dict[str, dict[str, float]] = {
    "alligator": {"jaw": 13, "teeth": 8, "lips": 5},
    "envelope": {"upper": 10.0, "lower": 10.0},
    "histvol": {"length": 10},
    "keltner": {"multiplier": 2.0},
    "mcginley": {"length": 14},
    "ppo": {"fast": 10, "slow": 21},
    "regression_channel": {"length": 100},
    "roc": {"length": 9},
    "sma": {"length": 9},
    "stoch": {"smooth": 1},
    "trend_strength": {"length": 14},
    "vwap_bands": {"multiplier": 1.0},
}
"""TradingView's defaults that differ from ours."""


def test_the_defaults_that_differ_are_declared_and_named_on_the_page() -> None:
    declared = {
        name: {each.name: each.tradingview for each in indicator.parameters if each.tradingview is not None}
        for name, indicator in all_indicators().items()
    }
    assert {name: others for name, others in declared.items() if others} == BUILT_IN
    for name, others in BUILT_IN.items():
        for parameter, value in others.items():
            assert get(name).settings()[parameter] != value
            assert f"{parameter} {value:g}" in get(name).differences


def test_every_default_of_a_study_is_ours_or_declared() -> None:
    compared = 0
    for study in all_studies().values():
        if sum(plot.indicator == "sma" for plot in study.plots) > 1:
            continue  # several averages of different lengths
        inputs = {each.name: each.default for each in study.inputs}
        for plot in study.plots:
            parameters = {each.name: each for each in get(plot.indicator).parameters}
            for name, source in plot.uses.items():
                ours, theirs = parameters[name], inputs[source]
                if isinstance(theirs, str):
                    theirs = theirs.lower()
                known = (ours.default, ours.tradingview, OTHER_VERSIONS.get((study.title, name)))
                assert theirs in known, f"{study.title}: {name} is {theirs}, {known}"
                compared += 1
    assert compared > 80
