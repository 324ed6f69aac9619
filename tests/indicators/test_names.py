"""The names by which indicators are found: those of TradingView, in any spelling, and what is suggested for others."""

from __future__ import annotations

import pytest

from openbell.charts.studies.catalogue import all_studies
from openbell.indicators.evaluation import parse_requests
from openbell.indicators.registry import all_indicators, get
from openbell.market.errors import InvalidParameter
from openbell.strategies.indicator_names import indicator_of

TRADINGVIEW = {
    "RSI": "rsi",
    "MACD": "macd",
    "VWAP": "vwap",
    "Keltner Channels": "keltner",
    "Relative Strength Index": "rsi",
    "Average True Range": "atr",
    "Bollinger Bands %B": "percent_b",
    "Bollinger Bands %b": "percent_b",
    "BB %B": "percent_b",
    "Bollinger BandWidth": "bb_width",
    "On Balance Volume": "obv",
    "DMI": "adx",
    "EFI": "force",
    "Elder's Force Index": "force",
    "BBP": "elder_ray",
    "Bull Bear Power": "elder_ray",
    "AO": "awesome",
    "UO": "ultimate",
    "Stochastic RSI": "stoch_rsi",
    "Stoch RSI": "stoch_rsi",
    "Historical Volatility": "histvol",
    "Parabolic SAR": "sar",
    "Williams %R": "williams_r",
    "Pivot Points Standard": "pivot",
    "Relative Vigor Index": "rvi",
    "Exponential Moving Average": "ema_line",
    "EMA": "ema_stack",
}
SEVERAL_AVERAGES = {"MA Cross", "MA with EMA Cross"} | {f"Moving Average {n}" for n in ("Double", "Triple", "Multiple")}


def test_tradingviews_names_find_indicators_and_are_the_keys_of_results() -> None:
    for asked, name in TRADINGVIEW.items():
        (request,) = parse_requests([asked])
        assert (request.key, request.indicator.name) == (asked, name)


def test_the_title_of_every_study_names_its_indicator() -> None:
    for study in all_studies().values():
        if study.plots and study.title not in SEVERAL_AVERAGES:
            assert get(study.title).name == study.plots[0].indicator


def test_names_are_found_in_any_spelling() -> None:
    for indicator in all_indicators().values():
        for name in (indicator.name, *indicator.aliases):
            for spelled in (name.upper(), name.title().replace("_", " "), name.title().replace("_", ""), f" {name} "):
                assert get(spelled) is indicator


def test_strategies_take_the_same_names_except_that_ema_is_one_line() -> None:
    for asked, name in TRADINGVIEW.items():
        assert indicator_of(asked).name == ("ema_line" if asked == "EMA" else name)


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("Keltner Chanels", "keltner_channels"),
        ("Keltner Bands Pro", "keltner"),
        ("Donchian Trend", "donchian"),
        ("Relative Strenght Index", "relative_strength_index"),
        ("Ichimoku Kinko Hyo", "ichimoku"),
        ("supertrnd", "supertrend"),
    ],
)
def test_unknown_names_are_compared_by_words_too(asked: str, near: str) -> None:
    with pytest.raises(InvalidParameter, match=f"did you mean '{near}'"):
        get(asked)


def test_a_common_word_alone_suggests_nothing() -> None:
    for asked in ("Nadaraya Channels", "Nadaraya Index", "", "%", "x" * 500):
        with pytest.raises(InvalidParameter, match="list_indicators has them all"):
            get(asked)


INPUTS: dict[str, dict[str, object]] = {
    "macd": {"fast_length": 5, "slow_length": 9, "signal_smoothing": 4},
    "MACD": {"Fast Length": 5, "slowLength": 9, "signal_length": 4},
    "supertrend": {"atr_length": 7, "factor": 2.5},
    "sar": {"start": 0.01, "increment": 0.01, "max_value": 0.1},
    "ichimoku": {"conversion_line_length": 7, "base_line_length": 22, "leading_span_b_length": 44, "lagging_span": 22},
    "stoch": {"%K Length": 10, "%K Smoothing": 2, "%D Smoothing": 4},
    "stoch_rsi": {"length_rsi": 10, "length_stoch": 11, "k": 2, "d": 4},
    "pivot": {"type": "Classic", "period": "WEEK"},
    "alligator": {"jaw_length": 14, "teeth_length": 9, "lips_length": 6},
    "kst": {"roc_length_1": 11, "sma_length_4": 12, "signal_length": 7},
    "histvol": {"Length": 10, "convention": "TradingView"},
}


def test_parameters_are_taken_by_tradingviews_names_of_inputs() -> None:
    for name, inputs in INPUTS.items():
        settings = get(name).settings(**inputs)
        changed = {key: value for key, value in settings.items() if value != get(name).settings()[key]}
        assert list(changed.values()) == [
            value.lower() if isinstance(value, str) else value for value in inputs.values()
        ]
        for key, value in inputs.items():
            assert settings[get(name).parameter(key).name] == (value.lower() if isinstance(value, str) else value)


def test_a_length_of_the_four_averages_names_the_one_average() -> None:
    for name in ("ema", "EMA", "ema_stack"):
        with pytest.raises(InvalidParameter, match="ema_stack has no parameter 'length'; ema_line has it"):
            parse_requests([{"name": name, "length": 20}])
