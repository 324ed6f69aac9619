"""Timeframes and the names that each contract has for them."""

from __future__ import annotations

import pytest

from openbell.market.errors import InvalidTimeframe
from openbell.market.timeframes import SPELLINGS, Timeframe, name_of, parse_timeframe

CHART_SIGNALS = {"1min": Timeframe.M1, "5min": Timeframe.M5, "15min": Timeframe.M15, "1hour": Timeframe.H1}


def test_lengths() -> None:
    minutes = [timeframe.seconds / 60 for timeframe in Timeframe]

    assert minutes == [1, 3, 5, 15, 30, 60, 120, 240, 360, 720, 1440, 10080]


def test_days_and_weeks_are_not_intraday() -> None:
    assert [timeframe for timeframe in Timeframe if not timeframe.intraday] == [Timeframe.D1, Timeframe.W1]


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
