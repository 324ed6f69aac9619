"""Timeframes and the names that each contract has for them."""

from __future__ import annotations

import pytest

from openbell.market.errors import InvalidTimeframe
from openbell.market.timeframes import ALL_NAMES, CHART, SHORT, SPELLINGS, Timeframe, name_of, parse_timeframe

CHART_SIGNALS = {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}


def test_lengths() -> None:
    minutes = [timeframe.seconds / 60 for timeframe in Timeframe if timeframe.intraday]
    days = [timeframe.seconds / 86400 for timeframe in Timeframe if not timeframe.intraday]

    assert minutes == [1, 2, 3, 5, 15, 30, 45, 60, 120, 180, 240, 360, 480, 720]
    assert days == [1, 2, 3, 7, 30, 91, 182, 365]


def test_names() -> None:
    """Servers and commands accept the twelve short names; charts have a name for every timeframe, shortest first."""
    assert list(SHORT) == ["1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w"]
    assert list(CHART.values()) == list(Timeframe)
    assert " ".join(CHART) == "1m 2m 3m 5m 15m 30m 45m 1h 2h 3h 4h 6h 8h 12h 1D 2D 3D 1W 1M 3M 6M 1Y"
    assert sorted(ALL_NAMES.values(), key=lambda each: each.seconds) == list(Timeframe)
    assert len({name.lower() for name in ALL_NAMES}) == len(Timeframe)


def test_charts_tell_a_minute_from_a_month() -> None:
    assert [parse_timeframe(name, CHART) for name in ("1m", "1M")] == [Timeframe.M1, Timeframe.MONTH]
    for name in ("1M", "2m", "45m", "1D", "1mo"):
        with pytest.raises(InvalidTimeframe):
            parse_timeframe(name, SHORT)


def test_every_intraday_timeframe_divides_the_day() -> None:
    assert all(86400 % timeframe.seconds == 0 for timeframe in Timeframe if timeframe.intraday)


@pytest.mark.parametrize("name", CHART_SIGNALS)
def test_a_contracts_own_names_are_read(name: str) -> None:
    assert parse_timeframe(name, CHART_SIGNALS) is CHART_SIGNALS[name]


@pytest.mark.parametrize("name", ["", "1MIN", " 1min", "1min ", "60", "4h", "1hour\n", "M1", "１min", "x" * 9999])
def test_any_other_name_is_refused_with_the_accepted_names(name: str) -> None:
    with pytest.raises(InvalidTimeframe) as refused:
        parse_timeframe(name, CHART_SIGNALS)
    assert refused.value.details["accepted"] == ["1min", "5min", "15min", "1hour"]
    assert "1min, 5min, 15min, 1hour" in refused.value.message
    assert len(refused.value.message) < 200


@pytest.mark.parametrize("name", ["1m", "5m", "15m", "1h"])
def test_another_contracts_name_is_read_and_translated_into_the_own_name(name: str) -> None:
    timeframe = parse_timeframe(name, CHART_SIGNALS)
    assert timeframe is SPELLINGS[name]
    assert CHART_SIGNALS[name_of(timeframe, CHART_SIGNALS)] is timeframe


def test_the_closest_name_is_suggested() -> None:
    with pytest.raises(InvalidTimeframe, match="did you mean '15min'"):
        parse_timeframe("15mins", CHART_SIGNALS)
