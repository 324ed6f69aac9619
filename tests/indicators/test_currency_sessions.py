"""Sessions of currencies: Sunday evening in New York belongs to Monday, and to Monday's week."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from openbell.feeds.sim.bars import minute_bars
from openbell.indicators.profiles import by_session
from openbell.indicators.registry import get
from openbell.indicators.regular_hours import regular_part, session_days
from openbell.market.bars import Bars, Values, merge, resample
from openbell.market.timeframes import Timeframe
from tests.market.walks import FOREX, at, walk

NEW_YORK = ZoneInfo("America/New_York")
FOREVER = 1e12


def day_of(time: int) -> str:
    """Returns the date of the trading day in which a bar opens, in plain Python."""
    local = datetime.fromtimestamp(time, UTC).astimezone(NEW_YORK)
    return (local + timedelta(hours=7)).date().isoformat()


@cache
def quarter_hours() -> Bars:
    """Two weeks of EUR/USD, in the middle of which the clocks change, with two quotes of a Saturday."""
    minutes = minute_bars(FOREX, 7, at("2025-10-27T00:00Z"), at("2025-11-08T00:00Z"))
    stray = walk([at("2025-11-01T12:00Z"), at("2025-11-01T12:15Z")], 1, FOREX, price=500.0)
    return resample(merge(minutes, stray), Timeframe.M15, FOREVER)


def line(name: str, label: str) -> Values:
    indicator = get(name)
    return next(each.values for each in indicator.run(quarter_hours()).lines if each.label == label)


def by_day() -> dict[str, list[int]]:
    """Returns the places of the bars of each trading day, without those of Saturday."""
    found: dict[str, list[int]] = {}
    for place, time in enumerate(quarter_hours().time.tolist()):
        if datetime.fromtimestamp(time, UTC).weekday() != 5:
            found.setdefault(day_of(time), []).append(place)
    return found


def test_each_day_has_its_own_vwap() -> None:
    bars, found = quarter_hours(), line("vwap", "VWAP")

    assert list(by_day()) == [
        "2025-10-27",
        *(f"2025-10-{n}" for n in range(28, 32)),
        *(f"2025-11-0{n}" for n in range(3, 8)),
    ]
    for places in by_day().values():
        volume = bars.volume[places]
        typical = (bars.high[places] + bars.low[places] + bars.close[places]) / 3
        assert np.allclose(found[places], np.cumsum(typical * volume) / np.cumsum(volume), rtol=1e-12, atol=0)


def test_levels_of_sunday_evening_and_monday_are_those_of_friday() -> None:
    bars, found = quarter_hours(), line("pivot", "P")
    days = list(by_day().values())
    sunday = int(np.searchsorted(bars.time, at("2025-11-02T22:00Z")))

    for before, places in pairwise(days):
        expected = (bars.high[before].max() + bars.low[before].min() + bars.close[before[-1]]) / 3
        assert np.allclose(found[places], expected, rtol=1e-12, atol=0)
    assert sunday == days[5][0]
    assert found[sunday] == found[days[5][-1]] != found[days[4][-1]]


def test_quotes_of_a_saturday_belong_to_no_session() -> None:
    bars = quarter_hours()
    saturday = bars.time // 86400 == at("2025-11-01T00:00Z") // 86400

    assert (session_days(bars)[saturday] == -1).all()
    assert np.isnan(regular_part(bars).close[saturday]).all()
    assert resample(bars, Timeframe.D1, FOREVER).high.max() < 2.0


@pytest.mark.parametrize("timeframe", [Timeframe.M15, Timeframe.H1, Timeframe.H4])
def test_weekly_profiles_begin_on_sunday(timeframe: Timeframe) -> None:
    bars = resample(quarter_hours(), timeframe, FOREVER)

    weeks, days = by_session(bars, "weekly"), by_session(bars, "daily")

    opening = at("2025-11-02T22:00Z") // timeframe.seconds * timeframe.seconds
    assert bars.time[weeks.first].tolist() == [bars.time[0], opening]
    assert bars.time[days.first].tolist()[5] == opening
    assert len(days) == 10
