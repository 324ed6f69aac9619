"""Figures worked out by hand, those of raptorbt on real prices, and none that is not a number."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import isfinite, sqrt

import numpy as np
import pytest
from hypothesis import given, settings

from openbell.backtest.engine import simulate
from openbell.backtest.metrics import RunMetrics, bars_per_year, measure
from openbell.backtest.rules import Setup
from openbell.market.bars import Bars, make
from openbell.market.instruments import parse
from openbell.market.sessions import sessions_of
from openbell.market.timeframes import Timeframe
from openbell.strategies.evaluation import Conditions, evaluate
from openbell.strategies.spec import PositionSide
from tests.backtest import raptor
from tests.backtest.masks import Case, Row, at, bars_of, cases
from tests.backtest.real_strategies import FILES, SPECS, real_bars, strategy
from tests.counts import runs
from tests.desk.importing.test_real_files import RealFile

FINITE = runs(200, soak=3000)
FREE = Setup(cash=1000.0, fee=0.0)
FLAT: Row = (100, 100, 100, 100)


def days(closes: list[float], symbol: str = "BTC/USD") -> Bars:
    """Daily bars that open at the close before."""
    opens = np.array([closes[0], *closes[:-1]])
    high, low = np.maximum(opens, closes), np.minimum(opens, closes)
    times = 1_700_006_400 // 86400 * 86400 + 86400 * np.arange(len(closes))
    return make(parse(symbol), Timeframe.D1, times, opens, high, low, closes, np.ones(len(closes)))


def test_figures_by_hand() -> None:
    # Bought at 100, sold at 120; bought at 120, sold at 90. The equity is 1000, 1000, 1100, 1200, 1200, 900, 900.
    bars = days([100, 100, 110, 120, 120, 90, 90])
    run = simulate(bars, at(7, [1, 4], [3, 5]), PositionSide.LONG, {}, FREE)
    assert run.equity == pytest.approx([1000, 1000, 1100, 1200, 1200, 900, 900])
    found = measure(run, bars)

    returns = np.array([0, 0, 0.1, 1200 / 1100 - 1, 0, -0.25, 0])
    assert found.total_return == pytest.approx(-0.1)
    assert found.annual_return == pytest.approx(0.9 ** (365 / 7) - 1)
    assert found.volatility == pytest.approx(returns.std(ddof=1) * sqrt(365))
    assert found.sharpe == pytest.approx(returns.mean() / returns.std(ddof=1) * sqrt(365))
    assert found.sortino == pytest.approx(returns.mean() / sqrt(0.0625 / 7) * sqrt(365))
    assert found.max_drawdown == pytest.approx(0.25)
    assert found.max_drawdown_bars == 2  # from the bar of the last maximum to the end
    assert found.calmar == pytest.approx((0.9 ** (365 / 7) - 1) / 0.25)
    assert (found.trades, found.win_rate, found.profit_factor) == pytest.approx((2, 0.5, 200 / 300))
    assert found.exposure == pytest.approx(3 / 7)  # bars 2 and 3, and 5: each trade leaves at an open
    assert found.turnover == pytest.approx((1000 + 1200 + 1200 + 900) / (7300 / 7))
    assert found.average_bars == pytest.approx(1.5)
    score = 0.25 * 0 + 0.2 * 0.75 + 0.2 * 0.5 + 0.2 * 0.9 ** (365 / 7) / 3 + 0.15 * (200 / 300 + 1) / 3
    assert (found.sharpe or 0) < -1
    assert found.score == pytest.approx(score)


def test_the_length_of_a_drawdown_ends_when_the_equity_is_back() -> None:
    bars = days([100, 100, 120, 90, 100, 120, 130, 125])
    run = simulate(bars, at(8, [0]), PositionSide.LONG, {}, FREE)
    assert (measure(run, bars).max_drawdown, measure(run, bars).max_drawdown_bars) == pytest.approx((0.25, 3))


def test_holding_the_instrument_has_a_beta_of_one_and_no_alpha() -> None:
    chance = np.random.default_rng(5)
    bars = days((100 * np.exp(np.cumsum(chance.normal(0, 0.02, 300)))).tolist())
    bars = replace(bars, open=np.append(bars.close[0], bars.close[:-1]))
    held = measure(simulate(bars, at(300, [0]), PositionSide.LONG, {}, FREE), bars)
    assert held.beta == pytest.approx(1)
    assert held.alpha == pytest.approx(0, abs=1e-9)
    short = measure(simulate(bars, at(300, [0]), PositionSide.SHORT, {}, FREE), bars)
    assert short.beta is not None
    assert short.beta < -0.5


def test_beta_is_that_of_holding_from_the_first_open() -> None:
    # Held from the second open on, while the instrument rose by 100 % in the first bar and by 10 % in each other.
    bars = replace(days([200.0, 220.0, 242.0]), open=np.array([100.0, 200.0, 220.0]))
    found = measure(simulate(bars, at(3, [0]), PositionSide.LONG, {}, FREE), bars)
    returns, market = np.array([0, 0.1, 0.1]), np.array([1, 0.1, 0.1])
    beta = np.cov(returns, market)[0, 1] / np.var(market, ddof=1)
    assert found.beta == pytest.approx(beta)
    assert found.alpha == pytest.approx((returns.mean() - beta * market.mean()) * 365)


def test_a_price_that_grows_by_the_same_share_in_each_bar_has_no_beta() -> None:
    closes = (100 * 1.01 ** np.arange(1, 51)).tolist()
    bars = days(closes)
    bars = replace(bars, open=np.append(100.0, bars.close[:-1]))
    found = measure(simulate(bars, at(50, [20]), PositionSide.LONG, {}, FREE), bars)
    assert (found.beta, found.alpha) == (None, None)


def test_a_position_that_is_open_at_the_end_was_bought_but_not_sold() -> None:
    bars = days([100.0, 100.0, 100.0])
    assert measure(simulate(bars, at(3, [0]), PositionSide.LONG, {}, FREE), bars).turnover == pytest.approx(1)
    assert measure(simulate(bars, at(3, [0], [1]), PositionSide.LONG, {}, FREE), bars).turnover == pytest.approx(2)


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("file", [FILES[0], FILES[2]], ids=str)
def test_figures_on_real_prices_equal_raptorbts(file: RealFile, name: str) -> None:
    bars = real_bars(file)
    conditions = evaluate(strategy(name), bars)
    # No position is open at the end: raptorbt does not count it as a trade.
    entry, leave = conditions.entry.copy(), conditions.exit.copy()
    entry[-2:], leave[-2] = False, True
    conditions = Conditions(entry & ~leave, leave)
    ours = measure(simulate(bars, conditions, PositionSide.LONG, {}, Setup()), bars)
    theirs = raptor.run(bars, conditions, PositionSide.LONG, Setup(), bars_per_year(bars)).metrics

    pairs = {
        "total_return": (ours.total_return, theirs.total_return_pct / 100),
        "sharpe": (ours.sharpe, theirs.sharpe_ratio),
        "sortino": (ours.sortino, theirs.sortino_ratio),
        "max_drawdown": (ours.max_drawdown, theirs.max_drawdown_pct / 100),
        "win_rate": (ours.win_rate, theirs.win_rate_pct / 100),
        "profit_factor": (ours.profit_factor, theirs.profit_factor),
        "average_bars": (ours.average_bars, theirs.avg_holding_period),
        "exposure": (ours.exposure, theirs.exposure_pct / 100),
    }
    for figure, (our, their) in pairs.items():
        assert our == pytest.approx(their, rel=1e-9), figure
    assert ours.trades == theirs.total_trades


# What is undefined


def test_without_bars_nothing_is_defined() -> None:
    bars = bars_of([])
    found = asdict(measure(simulate(bars, at(0, []), PositionSide.LONG, {}, FREE), bars))
    assert found.pop("trades") == 0
    assert set(found.values()) == {None}


@pytest.mark.parametrize("count", [1, 50])
def test_without_trades_the_returns_are_zero_and_ratios_undefined(count: int) -> None:
    bars = bars_of([FLAT] * count)
    found = measure(simulate(bars, at(count, []), PositionSide.LONG, {}, FREE), bars)
    assert (found.total_return, found.annual_return, found.max_drawdown, found.exposure) == (0, 0, 0, 0)
    assert (found.max_drawdown_bars, found.turnover) == (0, 0)
    assert found.volatility == (None if count == 1 else 0)
    undefined = (found.sharpe, found.sortino, found.calmar, found.win_rate, found.profit_factor, found.score)
    assert undefined == (None,) * 6
    assert (found.average_bars, found.alpha, found.beta) == (None,) * 3


def test_without_a_losing_trade_the_profit_factor_is_undefined_and_counts_as_the_highest() -> None:
    bars = days([100, 100, 110, 121])
    found = measure(simulate(bars, at(4, [0]), PositionSide.LONG, {}, FREE), bars)
    assert (found.profit_factor, found.sortino, found.calmar) == (None, None, None)
    assert found.score == pytest.approx(0.25 + 0.2 + 0.2 + 0.2 + 0.15)


def test_after_a_short_that_lost_more_than_the_cash_figures_made_of_returns_are_undefined() -> None:
    bars = days([100, 100, 300, 300, 90])
    found = measure(simulate(bars, at(5, [0], [2]), PositionSide.SHORT, {}, FREE), bars)
    assert (found.total_return, found.max_drawdown, found.win_rate) == pytest.approx((-2, 2, 0))
    undefined = (found.annual_return, found.volatility, found.sharpe, found.sortino, found.calmar)
    assert (*undefined, found.alpha, found.beta) == (None,) * 7
    assert found.score == pytest.approx(0.15 / 3)  # a profit factor of 0


def test_an_annual_return_beyond_floats_is_undefined() -> None:
    bars = bars_of([FLAT, (100, 1e14, 100, 1e14)])
    found = measure(simulate(bars, at(2, [0]), PositionSide.LONG, {}, FREE), bars)
    assert found.total_return == pytest.approx(1e12 - 1)
    assert found.annual_return is None
    json.dumps(asdict(found), allow_nan=False)


@given(cases())
@settings(max_examples=FINITE, deadline=None)
def test_every_figure_is_finite_or_none_and_the_same_call_gives_the_same_bytes(case: Case) -> None:
    found, again = (measure(simulate(*case), case[0]) for _ in range(2))
    for value in asdict(found).values():
        assert value is None or isfinite(value)
    assert json.dumps(asdict(found), allow_nan=False) == json.dumps(asdict(again), allow_nan=False)
    assert found.score is None or 0 <= found.score <= 1
    assert found.win_rate is None or 0 <= found.win_rate <= 1
    assert found.exposure is None or 0 <= found.exposure <= 1
    assert found.max_drawdown is None or found.max_drawdown >= 0
    assert all(type(value) in {int, float, type(None)} for value in asdict(found).values())


# A year


def session_bars(symbol: str, timeframe: Timeframe, extended: bool) -> Bars:
    """All bars of a month of sessions."""
    length = timeframe.seconds
    starts = [
        start
        for each in sessions_of(2025)[20:42]
        for start in range(
            (each.premarket if extended else each.open) // length * length, each.end if extended else each.close, length
        )
    ]
    prices = np.full(len(starts), 100.0)
    return make(parse(symbol), timeframe, starts, prices, prices, prices, prices, prices)


@pytest.mark.parametrize(
    ("symbol", "timeframe", "expected"),
    [
        ("BTC/USD", Timeframe.D1, 365),
        ("BTC/USD", Timeframe.H1, 365 * 24),
        ("BTC/USD", Timeframe.M1, 365 * 24 * 60),
        ("BTC/USD", Timeframe.W1, 365 / 7),
        ("AAPL", Timeframe.D1, 252),
        ("AAPL", Timeframe.W1, 252 / 5),
        ("EUR/USD", Timeframe.D1, 260),
        ("EUR/USD", Timeframe.H4, 260 * 6),
        ("AAPL", Timeframe.D2, 126.0),
        ("BTC/USD", Timeframe.D3, 365 / 3),
        ("EUR/USD", Timeframe.D2, 130.0),
        ("AAPL", Timeframe.MONTH, 12.0),
        ("EUR/USD", Timeframe.QUARTER, 4.0),
        ("BTC/USD", Timeframe.HALF, 2.0),
        ("AAPL", Timeframe.YEAR, 1.0),
    ],
)
def test_bars_in_a_year(symbol: str, timeframe: Timeframe, expected: float) -> None:
    bars = days([100.0] * 5, symbol)
    assert bars_per_year(replace(bars, timeframe=timeframe)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("timeframe", "extended", "expected"),
    [
        (Timeframe.M1, False, 390),
        (Timeframe.M1, True, 960),
        (Timeframe.M5, False, 78),
        (Timeframe.H1, False, 7),
        (Timeframe.H1, True, 16),
    ],
)
def test_intraday_bars_of_stocks_are_counted_by_session(timeframe: Timeframe, extended: bool, expected: int) -> None:
    assert bars_per_year(session_bars("AAPL", timeframe, extended)) == pytest.approx(252 * expected)


def test_a_session_counts_if_only_its_extended_hours_have_bars() -> None:
    bars = session_bars("AAPL", Timeframe.M1, True)
    premarket = bars.take(np.isin(bars.time, session_bars("AAPL", Timeframe.M1, False).time, invert=True))
    assert bars_per_year(premarket) == pytest.approx(252 * (960 - 390))


def test_intraday_bars_of_stocks_outside_all_sessions_count_as_regular_hours() -> None:
    bars = session_bars("AAPL", Timeframe.H1, False)
    assert bars_per_year(bars.take(slice(0, 0))) == 252 * 6.5
    assert bars_per_year(replace(bars, time=bars.time - 100 * 365 * 86400)) == 252 * 6.5


def test_the_annual_figures_of_a_year_of_days_are_those_of_the_run() -> None:
    bars = days([100.0] * 251 + [110.0], "AAPL")
    found: RunMetrics = measure(simulate(bars, at(252, [0]), PositionSide.LONG, {}, FREE), bars)
    assert found.annual_return == pytest.approx(found.total_return)
