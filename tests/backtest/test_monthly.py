"""Monthly and yearly returns equal a plain calculation over the bars."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isclose, prod
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from openbell.backtest.outcome import monthly_returns, yearly_returns
from openbell.market.bars import Bars, empty, make
from openbell.market.instruments import AssetClass, parse
from openbell.market.timeframes import Timeframe
from tests.strategies.stretches import simulated, stock_hours

STRETCHES = {
    "days of a stock": simulated("AAPL", Timeframe.D1, 900).bars,
    "hours of a stock": stock_hours(60).bars,
    "days of crypto": simulated("BTC/USD", Timeframe.D1, 400).bars,
    "weeks of a stock": simulated("AAPL", Timeframe.W1, 900).bars,
    "hours of crypto": simulated("BTC/USD", Timeframe.H1, 70).bars,
}


def equity_of(bars: Bars) -> list[float]:
    found: list[float] = (10_000.0 * np.cumprod(1.0 + np.random.default_rng(5).normal(0.0, 0.01, len(bars)))).tolist()
    return found


def last_moment(bars: Bars, index: int) -> datetime:
    """A second before the bar closes; for sessions of a stock, a moment of the last session."""
    stock = bars.instrument.asset_class is AssetClass.STOCK
    zone = ZoneInfo("America/New_York") if stock else UTC
    begun = int(bars.time[index])
    if stock and bars.timeframe is Timeframe.D1:
        return datetime.fromtimestamp(begun, zone)
    if stock and bars.timeframe is Timeframe.W1:
        return datetime.fromtimestamp(begun + (4 - datetime.fromtimestamp(begun, zone).weekday()) * 86400, zone)
    return datetime.fromtimestamp(begun + bars.timeframe.seconds - 1, zone)


@pytest.mark.parametrize("name", STRETCHES)
def test_months_and_years_equal_a_plain_calculation(name: str) -> None:
    bars = STRETCHES[name]
    equity = equity_of(bars)
    at_end: dict[tuple[int, int], float] = {}
    for index, value in enumerate(equity):
        moment = last_moment(bars, index)
        at_end[moment.year, moment.month] = value
    values = [equity[0], *at_end.values()]
    expected = {key: after / before - 1 for key, before, after in zip(at_end, values[:-1], values[1:], strict=True)}
    found = monthly_returns(np.array(equity), bars)
    assert len(found) >= 3
    assert [(each.year, each.month) for each in found] == list(expected)
    for each in found:
        assert each.share is not None
        assert isclose(each.share, expected[each.year, each.month], rel_tol=1e-9, abs_tol=1e-12)
    for year, share in yearly_returns(np.array(equity), bars).items():
        assert share is not None
        assert isclose(1 + share, prod(1 + (each.share or 0) for each in found if each.year == year), rel_tol=1e-9)
    whole = prod(1 + (each.share or 0) for each in found)
    assert isclose(whole, equity[-1] / equity[0], rel_tol=1e-9)


def test_the_last_minute_after_hours_belongs_to_the_old_month_in_winter_and_in_summer() -> None:
    """20:00 in New York is the next day in UTC in winter."""
    for day, month in (("2025-01-31", 1), ("2025-04-30", 4)):
        close = datetime.fromisoformat(f"{day}T19:59:00").replace(tzinfo=ZoneInfo("America/New_York"))
        opens = close.replace(day=1, hour=4, minute=0, month=month + 1)
        times = [int(close.timestamp()), int(opens.timestamp())]
        bars = make(parse("AAPL"), Timeframe.M1, times, *([[1.0, 1.0]] * 5))
        assert [each.month for each in monthly_returns(np.array([1.0, 2.0]), bars)] == [month, month + 1]


def test_a_month_after_the_equity_is_used_up_has_no_return_and_no_bars_have_no_months() -> None:
    bars = make(parse("BTC/USD"), Timeframe.D1, [0, 40 * 86400, 80 * 86400], *([[1.0] * 3] * 5))
    shares = [each.share for each in monthly_returns(np.array([100.0, -5.0, -5.0]), bars)]
    assert shares == [0.0, -1.05, None]
    assert monthly_returns(np.empty(0), empty(parse("BTC/USD"))) == []
    assert yearly_returns(np.empty(0), empty(parse("BTC/USD"))) == {}
