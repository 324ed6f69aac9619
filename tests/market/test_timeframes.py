"""Timeframes and the names that each contract has for them."""

from __future__ import annotations

import pytest

from openbell.market.errors import InvalidTimeframe
from openbell.market.timeframes import ALL_NAMES, CHART, SHORT, Timeframe, name_of, parse_timeframe, read_timeframe

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
    for name in ("1M", "2m", "45m", "1mo", "3M", "m"):
        with pytest.raises(InvalidTimeframe):
            parse_timeframe(name, SHORT)


def test_every_intraday_timeframe_divides_the_day() -> None:
    assert all(86400 % timeframe.seconds == 0 for timeframe in Timeframe if timeframe.intraday)


@pytest.mark.parametrize("name", CHART_SIGNALS)
def test_a_contracts_own_names_are_read(name: str) -> None:
    assert parse_timeframe(name, CHART_SIGNALS) is CHART_SIGNALS[name]


@pytest.mark.parametrize(
    "name",
    ["", "1M", "m", "5M", "4h", "1w", "0h", "01h", "1-", "-1h", "1.0h", "M1", "１min", "x" * 9999, " " * 99 + "1h"],
)
def test_any_other_name_is_refused_with_the_accepted_names(name: str) -> None:
    with pytest.raises(InvalidTimeframe) as refused:
        parse_timeframe(name, CHART_SIGNALS)
    assert refused.value.details["accepted"] == ["1min", "5min", "15min", "1hour"]
    assert "1min, 5min, 15min, 1hour" in refused.value.message
    assert len(refused.value.message) < 200


SPELLED = {
    Timeframe.M1: "1m 1min 1Min 1MIN 1minute 1 minutely",
    Timeframe.M5: "5m 5min 5mins 5minutes 5",
    Timeframe.M15: "15m 15min 15",
    Timeframe.H1: "1h 1H 1hour 1Hour 60m 60min 60 h H hourly 1hr",
    Timeframe.H4: "4h 4H 4hour 4hours 240m 240min 240",
    Timeframe.D1: "1d 1D 1day 1Day D d daily Daily 24h day",
    Timeframe.W1: "1w 1W 1week 1wk W w weekly 7d",
    Timeframe.MONTH: "1M 1mo 1month M monthly",
    Timeframe.QUARTER: "3M 3mo 3months quarterly 1q",
    Timeframe.YEAR: "1Y 1y 1year 12M 12mo yearly",
}


def test_every_spelling_of_a_timeframe_is_one() -> None:
    for timeframe, spellings in SPELLED.items():
        assert {read_timeframe(each) for each in spellings.split()} == {timeframe}
    assert read_timeframe(" 1 hour ") is read_timeframe("1-hour") is Timeframe.H1


@pytest.mark.parametrize("names", [SHORT, ALL_NAMES, CHART, CHART_SIGNALS])
def test_every_contracts_names_are_read_by_all_and_answered_by_its_own(names: dict[str, Timeframe]) -> None:
    for name, timeframe in (SHORT | ALL_NAMES | CHART | CHART_SIGNALS).items():
        if timeframe in names.values():
            assert parse_timeframe(name, names) is timeframe
            assert names[name_of(timeframe, names)] is timeframe


def test_no_spelling_changes_its_meaning_with_the_server() -> None:
    """A minute here is never a month there: each server reads a text as all others do, or refuses it."""
    texts = {
        f"{count}{unit}" for count in ("", 1, 3, 5, 6, 12, 60) for unit in ("", "m", "M", "mo", "min", "h", "D", "y")
    }
    for text in texts:
        for names in (SHORT, ALL_NAMES, CHART, CHART_SIGNALS):
            if read_timeframe(text) not in names.values():
                with pytest.raises(InvalidTimeframe):
                    parse_timeframe(text, names)
            else:
                assert parse_timeframe(text, names) is read_timeframe(text)


def test_a_timeframe_that_a_contract_lacks_names_the_nearest_one() -> None:
    for text, near in (("4h", "1hour"), ("1M", "1hour"), ("3m", "5min")):
        with pytest.raises(InvalidTimeframe, match=f"{near} is nearest"):
            parse_timeframe(text, CHART_SIGNALS)


def test_the_closest_name_is_suggested() -> None:
    with pytest.raises(InvalidTimeframe, match="did you mean '15min'"):
        parse_timeframe("15mn", CHART_SIGNALS)
