"""Figures that describe a run. None of them is NaN or infinite: one that is undefined is None.

Returns are those of each bar, from the close before it to its close; the first bar begins at its open. A position that is
still open at the end counts as a trade. Shares are fractions: 0.25 is 25 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from typing import NamedTuple

import numpy as np

from openbell.backtest.curve import Curve, HoldingReturns, Returns, bar_returns, curve_of, holding_of, returns_of
from openbell.backtest.engine import Run
from openbell.backtest.rules import END, SIGNAL
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values
from openbell.market.instruments import AssetClass
from openbell.market.session_table import table_for
from openbell.market.timeframes import Timeframe

_LARGEST_EXPONENT = 700.0
"""`exp` of more does not fit into a float."""
DAYS = {AssetClass.STOCK: 252.0, AssetClass.CRYPTO: 365.0, AssetClass.FOREX: 260.0}
"""Trading days in a year."""
_WEEK = {AssetClass.STOCK: 5.0, AssetClass.CRYPTO: 7.0, AssetClass.FOREX: 5.0}
_DAY = 86400
_REGULAR_HOURS = 6.5


@dataclass(frozen=True, slots=True)
class RunMetrics:
    """The figures of a run. Annual ones use the trading time of the instrument; see `bars_per_year`."""

    total_return: float | None
    """Of the cash at the start. None without bars. Less than −1 if a short lost more than the cash."""
    annual_return: float | None
    """The constant yearly return that compounds to the total. None without bars, if the equity is 0 or less at the end,
    or if it is too large for a float."""
    volatility: float | None
    """Annual sample deviation of the returns. None with fewer than two bars, or if the equity was ever 0 or less."""
    sharpe: float | None
    """Annual mean return divided by the volatility, with no risk-free rate. None if the volatility is None or 0."""
    sortino: float | None
    """As `sharpe`, with the root mean square of the negative returns. None if no return is negative."""
    calmar: float | None
    """Annual return divided by the largest drawdown. None if either is undefined, or the drawdown is 0."""
    max_drawdown: float | None
    """The largest fall of the equity from an earlier maximum, as a share of it. None without bars."""
    max_drawdown_bars: int | None
    """Bars from that maximum until the equity is back at it, or until the end. None without bars."""
    win_rate: float | None
    """The share of trades with a profit. None without trades."""
    profit_factor: float | None
    """Sum of the profits divided by the sum of the losses. None without a losing trade."""
    exposure: float | None
    """The share of bars during which a position was held. None without bars."""
    turnover: float | None
    """Value bought and sold, divided by the mean equity. None without bars, or if the mean equity is 0 or less."""
    trades: int
    average_bars: float | None
    """Mean number of bars from entry to exit. None without trades."""
    alpha: float | None
    """Annual mean return that `beta` times the instrument's return does not explain. None if `beta` is None."""
    beta: float | None
    """Change of the return per change of the return of holding the instrument. None if `volatility` is None, or if the
    price does not move."""
    score: float | None
    """From 0 to 1: .25 n(sharpe) + .2 (1 − max drawdown) + .2 win rate + .2 n(annual return) + .15 n(profit factor), where n
    maps −1…2 to 0…1. What is undefined counts as 0, but a profit factor without a losing trade as 1. None without trades."""


_UNDEFINED = RunMetrics(*(None,) * 12, 0, *(None,) * 4)


class _Risk(NamedTuple):
    """The figures that are made of the returns of single bars."""

    volatility: float | None = None
    sharpe: float | None = None
    sortino: float | None = None
    alpha: float | None = None
    beta: float | None = None


class Dealings(NamedTuple):
    """Sums over trades. Those of several runs can be added."""

    trades: int
    wins: int
    """Trades with a profit."""
    won: float
    lost: float
    """More than 0 if a trade had a loss."""
    value: float
    """Bought and sold."""
    bars: int
    """From the entries to the exits."""


def measure(run: Run, bars: Bars) -> RunMetrics:
    """Returns the figures of a run over these bars."""
    if not len(bars):
        return _UNDEFINED
    market = returns_of(bars.close, float(bars.open[0]))
    return figures(run.equity, bars_per_year(bars), dealings(run.trades), held_bars(run.trades) / len(bars), market)


def dealings(trades: Trades) -> Dealings:
    """Returns the sums over the trades of a run."""
    # A position that is only valued at the end pays no fee; one that is closed there was sold.
    sold = np.where((trades.reason == END) & (trades.exit_fee == 0.0), 0.0, trades.exit_price)
    return Dealings(
        trades=len(trades),
        wins=int((trades.profit > 0).sum()),
        won=float(trades.profit.clip(min=0.0).sum()),
        lost=-float(trades.profit.clip(max=0.0).sum()),
        value=float((trades.quantity * (trades.entry_price + sold)).sum()),
        bars=int((trades.exit_index - trades.entry_index).sum()),
    )


def figures(equity: Values, yearly: float, made: Dealings, exposure: float, market: Values | None) -> RunMetrics:
    """Returns the figures of an equity with at least one value, of which there are `yearly` in a year.

    `market` is the return of the instrument at each bar; without it, alpha and beta are None.
    """
    holding = holding_of(market)
    return figures_of(curve_of(equity, bar_returns(equity), holding), yearly, made, exposure, holding)


def figures_of(
    curve: Curve, yearly: float, made: Dealings, exposure: float, holding: HoldingReturns | None
) -> RunMetrics:
    """Returns the figures of a curve that was computed with this `holding`."""
    annual = _annual(curve.growth, curve.bars / yearly)
    risk = _risk(curve.returns, yearly, holding)
    win_rate, profit_factor = ratio(made.wins, made.trades), ratio(made.won, made.lost)
    # Without a loss the factor is infinite, which counts as the highest number that the score distinguishes.
    factor = 2.0 if made.won and not made.lost else profit_factor
    return RunMetrics(
        total_return=curve.growth - 1.0,
        annual_return=annual,
        volatility=risk.volatility,
        sharpe=risk.sharpe,
        sortino=risk.sortino,
        calmar=None if annual is None else ratio(annual, curve.drawdown),
        max_drawdown=curve.drawdown,
        max_drawdown_bars=curve.drawdown_bars,
        win_rate=win_rate,
        profit_factor=profit_factor,
        exposure=exposure,
        turnover=ratio(made.value, curve.mean) if curve.mean > 0.0 else None,
        trades=made.trades,
        average_bars=ratio(made.bars, made.trades),
        alpha=risk.alpha,
        beta=risk.beta,
        score=None if win_rate is None else _score(risk.sharpe, curve.drawdown, win_rate, annual, factor),
    )


def _risk(returns: Returns | None, yearly: float, holding: HoldingReturns | None) -> _Risk:
    if returns is None:
        return _Risk()
    mean, volatility = returns.mean * yearly, returns.deviation * sqrt(yearly)
    beta = ratio(returns.shared, holding.squares) if holding else None
    alpha = None if holding is None or beta is None else mean - beta * holding.mean * yearly
    return _Risk(volatility, ratio(mean, volatility), ratio(mean, sqrt(returns.downside * yearly)), alpha, beta)


def ratio(part: float, whole: float | None) -> float | None:
    """Returns `part / whole`; None if that is not a number."""
    if not whole:
        return None
    found = float(part) / whole
    return found if isfinite(found) else None


def _annual(growth: float, years: float) -> float | None:
    if growth <= 0.0:
        return None
    exponent = log(growth) / years
    return exp(exponent) - 1.0 if exponent < _LARGEST_EXPONENT else None


def held_bars(trades: Trades) -> int:
    """Returns the number of bars during which a position was held. A signal leaves at the open, before its bar."""
    return int((trades.exit_index - trades.entry_index + (trades.reason != SIGNAL)).sum())


def _score(sharpe: float | None, drawdown: float, win_rate: float, annual: float | None, factor: float | None) -> float:
    return (
        0.25 * _unit(sharpe)
        + 0.2 * (1.0 - min(drawdown, 1.0))
        + 0.2 * win_rate
        + 0.2 * _unit(annual)
        + 0.15 * _unit(factor)
    )


def _unit(value: float | None) -> float:
    """Maps −1…2 to 0…1; None to 0."""
    return 0.0 if value is None else min(max((value + 1.0) / 3.0, 0.0), 1.0)


def bars_per_year(bars: Bars) -> float:
    """Returns the number of bars in a year of trading; more than 0.

    A year has 252 days for stocks, 365 for crypto and 260 for forex; a week has 5, 7 and 5. Crypto and forex trade around
    the clock. Of stocks, the number of intraday bars in a day is the mean over the sessions that the bars touch, so that it
    is right with and without extended hours.
    """
    kind, timeframe = bars.instrument.asset_class, bars.timeframe
    if timeframe.months:
        return 12 / timeframe.months
    if timeframe.of_days:
        return DAYS[kind] * _DAY / timeframe.seconds
    if timeframe is Timeframe.W1:
        return DAYS[kind] / _WEEK[kind]
    if not timeframe.intraday:
        return DAYS[kind]
    if kind is AssetClass.STOCK:
        return DAYS[kind] * _bars_per_session(bars)
    return DAYS[kind] * _DAY / timeframe.seconds


def _bars_per_session(bars: Bars) -> float:
    if len(bars):
        table = table_for(int(bars.time[0]) - _DAY, int(bars.time[-1]) + _DAY)
        session = table.extended(bars.time)
        touched = len(np.unique(session[session >= 0]))
        if touched:
            return len(bars) / touched
    return _REGULAR_HOURS * 3600 / bars.timeframe.seconds
