"""Portfolios: the equity of an account is the sum of its parts at every close, and its figures are those of the sum."""

from __future__ import annotations

import pickle
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.backtest.portfolio import Portfolio, PortfolioPart, portfolio
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.market.bars import Bars
from openbell.market.errors import InvalidParameter
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.reading import read_spec
from tests.backtest.test_metrics import days
from tests.strategies.specs import crossover, walk
from tests.strategies.stretches import simulated

CROSS = compiled(read_spec(crossover()))
ALWAYS = compiled(
    read_spec(
        {
            "name": "ALWAYS",
            "indicators": [{"id": "sma", "type": "SMA", "params": {"length": 1}}],
            "entryConditions": [{"type": "OVER", "indicator": "sma", "params": {"value": 0}}],
            "exitConditions": [{"type": "UNDER", "indicator": "sma", "params": {"value": 1}}],
            "parameters": [],
        }
    )
)
FREE = Setup(cash=1000.0, fee=0.0)
DAY = 86400


def image(found: Portfolio) -> bytes:
    parts = [(each.run.equity.tobytes(), list(each.run.trades), each.metrics) for each in found.parts]
    return pickle.dumps((parts, found.time.tobytes(), found.equity.tobytes(), found.metrics, found.correlation))


def later(bars: Bars, seconds: int) -> Bars:
    return replace(bars, time=bars.time + seconds)


def test_two_parts_by_hand() -> None:
    # Each is bought at the second open. The first doubles, the second halves; a fifth of the cash is not invested.
    one, other = days([100, 100, 150, 200]), days([50, 50, 50, 25], "ETH/USD")
    found = portfolio([PortfolioPart(ALWAYS, one, 0.6), PortfolioPart(ALWAYS, other, 0.2)], FREE)
    assert found.equity == pytest.approx([1000, 1000, 600 * 1.5 + 200 + 200, 600 * 2 + 100 + 200])
    assert found.time.tolist() == (one.time + DAY).tolist(), "a day is known at its end"
    returns = np.array([0, 0, 0.3, 1500 / 1300 - 1])
    figures = found.metrics
    assert figures.total_return == pytest.approx(0.5)
    assert figures.sharpe == pytest.approx(returns.mean() / returns.std(ddof=1) * sqrt(365))
    assert (figures.trades, figures.win_rate, figures.profit_factor) == pytest.approx((2, 0.5, 600 / 100))
    assert (figures.exposure, figures.average_bars) == pytest.approx((3 / 4, 2))
    assert (figures.alpha, figures.beta) == (None, None)
    # Returns of 0, 1/2, 1/3 and of 0, 0, −1/2.
    expected = np.corrcoef([0, 1 / 2, 1 / 3], [0, 0, -1 / 2])[0, 1]
    assert found.correlation[0][1] == found.correlation[1][0] == pytest.approx(expected)
    assert (found.correlation[0][0], found.correlation[1][1]) == pytest.approx((1, 1))


def test_a_part_is_worth_its_cash_before_its_first_bar_and_its_last_equity_after_its_last() -> None:
    one, other = days([100, 100, 200]), later(days([10, 10, 30], "ETH/USD"), 5 * DAY)
    found = portfolio([PortfolioPart(ALWAYS, one, 0.5), PortfolioPart(ALWAYS, other, 0.5)], FREE)
    assert found.equity == pytest.approx([1000, 1000, 1500, 1500, 1500, 1000 + 1500])
    assert found.correlation[0][1] is None, "they have no time in common"


def test_stocks_and_crypto_are_added_at_the_closes_of_each() -> None:
    stock, coin = (simulated(symbol, Timeframe.D1, 60).bars for symbol in ("AAPL", "BTC/USD"))
    found = portfolio([PortfolioPart(ALWAYS, stock, 0.5), PortfolioPart(ALWAYS, coin, 0.5)], FREE)
    one, other = found.parts
    assert len(found.time) == len(stock) + len(coin), "a session ends before the day of a coin"
    for at in (10, len(found.time) // 2, len(found.time) - 1):
        moment = found.time[at]
        # Closed at that time: sessions end 6.5 hours after they open, at most.
        stocks = [value for time, value in zip(stock.time, one.run.equity, strict=True) if time + 6.5 * 3600 <= moment]
        coins = [value for time, value in zip(coin.time, other.run.equity, strict=True) if time + DAY <= moment]
        assert found.equity[at] == pytest.approx((stocks or [500])[-1] + (coins or [500])[-1])
    # By the calendar, the two have 252 + 365 closes in a year.
    assert found.metrics.volatility is not None
    returns = np.diff(found.equity) / found.equity[:-1]
    yearly = (found.metrics.volatility / np.append(0, returns).std(ddof=1)) ** 2
    assert yearly == pytest.approx(252 + 365, rel=0.05)


@settings(max_examples=30, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 1000), min_size=1, max_size=4),
    counts=st.lists(st.integers(2, 300), min_size=4, max_size=4),
    share=st.floats(0.05, 1.0),
)
def test_the_account_is_the_sum_of_its_parts(seeds: list[int], counts: list[int], share: float) -> None:
    weight = share / len(seeds)
    parts = [
        PortfolioPart(CROSS, later(walk(seed, count), 3600 * (seed % 50)), weight)
        for seed, count in zip(seeds, counts, strict=False)
    ]
    found = portfolio(parts, Setup())
    ends = sum(float(each.run.equity[-1]) for each in found.parts)
    assert found.equity[-1] == pytest.approx(ends + 10_000 * (1 - share))
    assert found.metrics.trades == sum(each.metrics.trades for each in found.parts)
    assert set(found.time) == {time + 3600 for part in parts for time in part.bars.time.tolist()}
    assert all(value is None or -1 <= value <= 1 for row in found.correlation for value in row)
    assert image(found) == image(portfolio(parts, Setup())), "the same call gives the same bytes"
    for part, run in zip(parts, found.parts, strict=True):
        alone = backtest(CROSS, part.bars, Setup(cash=10_000 * weight))
        assert run.run.equity.tobytes() == alone.run.equity.tobytes()


@pytest.mark.parametrize("bars", [walk(11, 2000), walk(2, 500, "AAPL", Timeframe.M15)], ids=["crypto", "stock"])
def test_one_part_with_all_the_cash_is_its_backtest(bars: Bars) -> None:
    found, alone = portfolio([PortfolioPart(CROSS, bars, 1.0)], Setup()), backtest(CROSS, bars, Setup())
    assert found.equity.tobytes() == alone.run.equity.tobytes()
    assert found.metrics == replace(alone.metrics, alpha=None, beta=None)


def test_a_range_and_cut_bars() -> None:
    bars = walk(11, 600)
    start, end = float(bars.time[200]), float(bars.time[400])
    whole = portfolio([PortfolioPart(CROSS, bars, 0.5), PortfolioPart(ALWAYS, bars, 0.5)], Setup(), start, end)
    assert whole.time.tolist() == (bars.time[200:400] + 3600).tolist()
    cut = bars.take(slice(0, 400))
    assert image(whole) == image(
        portfolio([PortfolioPart(CROSS, cut, 0.5), PortfolioPart(ALWAYS, cut, 0.5)], Setup(), start)
    )


@pytest.mark.parametrize("weights", [(), (0.0,), (-0.5,), (1.2,), (0.6, 0.6), (float("nan"),), (0.001,) * 101])
def test_impossible_weights_are_refused(weights: tuple[float, ...]) -> None:
    bars = walk(11, 50)
    with pytest.raises(InvalidParameter):
        portfolio([PortfolioPart(CROSS, bars, each) for each in weights], Setup())


def test_a_part_without_bars_is_refused_by_its_name() -> None:
    parts = [PortfolioPart(CROSS, walk(11, 50), 0.5), PortfolioPart(CROSS, later(walk(1, 50, "ETH/USD"), 10**7), 0.5)]
    with pytest.raises(InvalidParameter, match="part 2, ETH/USD"):
        portfolio(parts, Setup(), end=1_700_100_000.0)


def test_weights_that_add_up_to_one_but_for_rounding_are_accepted() -> None:
    found = portfolio([PortfolioPart(CROSS, walk(seed, 50), 0.1) for seed in range(10)], Setup())
    assert found.equity[0] == pytest.approx(10_000)
