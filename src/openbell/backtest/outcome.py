"""What people ask about a run beside its figures: its best and worst trade, its largest fall, holding, periods and months.

Everything comes from the bars, the trades and the equity, so it is the same for a run of the gRPC backtester.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from openbell.backtest.current_signals import part_of
from openbell.backtest.curve import NOISE, deepest_fall
from openbell.backtest.engine import simulate
from openbell.backtest.metrics import RunMetrics
from openbell.backtest.rules import END, Setup
from openbell.backtest.runs import Backtest
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars, Values, bucket_bounds
from openbell.market.instruments import AssetClass
from openbell.market.trading_days import currency_days_at
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.spec import Number, Spec


class Figure(NamedTuple):
    """A figure of a table."""

    name: str
    text: str
    meaning: str


def figures(found: Backtest) -> list[Figure]:
    """Returns all figures of a backtest beside the return of holding the instrument."""
    metrics = found.metrics
    return [
        Figure("total return", share(metrics.total_return), "change of the equity from the start to the end"),
        Figure(
            "of holding", share(holding_return(found)), "total return of buying at the first open and holding, no fees"
        ),
        Figure("annual return", share(metrics.annual_return), "constant yearly return that compounds to the total"),
        Figure("volatility", share(metrics.volatility), "yearly standard deviation of the returns of single bars"),
        Figure(
            "Sharpe", ratio(metrics.sharpe), "yearly mean return divided by the volatility, without a risk-free rate"
        ),
        Figure("Sortino", ratio(metrics.sortino), "as Sharpe, but divided by the deviation of negative returns only"),
        Figure("Calmar", ratio(metrics.calmar), "annual return divided by the max drawdown"),
        Figure("max drawdown", share(metrics.max_drawdown), "largest fall of the equity from an earlier maximum"),
        Figure(
            "drawdown bars", _whole(metrics.max_drawdown_bars), "bars from that maximum until the equity is back at it"
        ),
        Figure("trades", f"{metrics.trades:,}", "positions opened; one that is open at the end counts"),
        Figure("win rate", share(metrics.win_rate), "share of trades with a profit after fees"),
        Figure("profit factor", ratio(metrics.profit_factor), "sum of the profits divided by the sum of the losses"),
        Figure("average bars", ratio(metrics.average_bars), "mean number of bars from entry to exit"),
        Figure("exposure", share(metrics.exposure), "share of bars during which a position was held"),
        Figure("turnover", ratio(metrics.turnover), "value bought and sold, divided by the mean equity"),
        Figure(
            "alpha", share(metrics.alpha), "yearly mean return that beta times the instrument's return does not explain"
        ),
        Figure("beta", ratio(metrics.beta), "change of the return per change of the instrument's return"),
        Figure(
            "rating", ratio(metrics.score), "0 to 1, from Sharpe, drawdown, win rate, annual return and profit factor"
        ),
    ]


def holding_return(found: Backtest) -> float:
    """Returns the return of buying at the first open and holding until the last close."""
    return float(found.bars.close[-1] / found.bars.open[0] - 1)


def share(value: float | None) -> str:
    """Returns a fraction in per cent; a dash if it is undefined."""
    return "–" if value is None else f"{value * 100:,.2f} %"


def ratio(value: float | None) -> str:
    """Returns a number with two decimals; a dash if it is undefined."""
    return "–" if value is None else f"{value:,.2f}"


def _whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


_DAY = 86400
_BEHIND_UTC = {AssetClass.STOCK: 5 * 3600}
"""Seconds that local time is behind UTC. Stocks trade from 4:00 to 20:00 in New York: daylight saving changes no date."""
_WEEKEND = 4 * _DAY
"""Seconds. Every time is less than `_WEEKEND` before the end of a day of forex."""


@dataclass(frozen=True, slots=True)
class TradeOutcome:
    """The result of one trade. Times are those of the opens of bars."""

    trade_return: float
    """Profit after both fees, as a share of the value that was bought."""
    entry_time: int
    exit_time: int | None
    """None if it was open at the end."""


@dataclass(frozen=True, slots=True)
class Fall:
    """The largest fall of the equity. Times are those of the opens of bars."""

    highest: int
    lowest: int
    back: int | None
    """When the equity was back at its maximum. None if it was not."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Facts about a run over at least one bar. Shares are fractions: 0.25 is 25 %."""

    metrics: RunMetrics
    start: int
    """When the first bar opens."""
    end: int
    """When the last bar opens."""
    initial_equity: float
    final_equity: float
    buy_and_hold_return: float
    """The return of buying at the first open and holding until the last close, without costs."""
    beats_buy_and_hold: bool
    average_trade_return: float | None
    """Mean return of the trades. None without trades."""
    best_trade: TradeOutcome | None
    worst_trade: TradeOutcome | None
    average_days_held: float | None
    """Mean days from entry to exit, nights and weekends included. None without trades."""
    fall: Fall | None
    """None if the equity never fell."""


def outcome_of(found: Backtest) -> RunOutcome:
    """Returns the facts about a run."""
    bars, trades, equity = found.bars, found.run.trades, found.run.equity
    returns = value_returns(trades)
    holding = holding_return(found)
    held = bars.time[trades.exit_index] - bars.time[trades.entry_index]
    traded = len(trades) > 0
    return RunOutcome(
        metrics=found.metrics,
        start=int(bars.time[0]),
        end=int(bars.time[-1]),
        initial_equity=float(equity[0]),
        final_equity=float(equity[-1]),
        buy_and_hold_return=holding,
        beats_buy_and_hold=(found.metrics.total_return or 0.0) > holding + NOISE,
        average_trade_return=float(returns.mean()) if traded else None,
        best_trade=_trade(trades, returns, int(returns.argmax()), bars) if traded else None,
        worst_trade=_trade(trades, returns, int(returns.argmin()), bars) if traded else None,
        average_days_held=float(held.mean()) / _DAY if traded else None,
        fall=_fall(equity, bars),
    )


def value_returns(trades: Trades) -> Values:
    """Returns the profit of each trade after costs, as a share of the value at its entry."""
    return np.asarray(trades.profit / (trades.quantity * trades.entry_price))


def _trade(trades: Trades, returns: Values, index: int, bars: Bars) -> TradeOutcome:
    left = None if trades.reason[index] == END else int(bars.time[trades.exit_index[index]])
    return TradeOutcome(float(returns[index]), int(bars.time[trades.entry_index[index]]), left)


def _fall(equity: Values, bars: Bars) -> Fall | None:
    found = deepest_fall(equity)
    if found is None:
        return None
    back = None if found.back is None else int(bars.time[found.back])
    return Fall(int(bars.time[found.highest]), int(bars.time[found.lowest]), back)


@dataclass(frozen=True, slots=True)
class PeriodMonth:
    """The trades that were entered in a month, and the return of its bars."""

    name: str
    """2026-09."""
    signals: int
    right: int
    closed: int
    total_return: float


@dataclass(frozen=True, slots=True)
class Period:
    """The trades that were entered in a period."""

    signals: int
    closed: int
    right: int
    average_return: float | None
    """Mean return of the closed trades, after costs. None without any."""
    sharpe: float | None
    total_return: float
    """Of all bars of the period; the returns of the months compound to it."""
    holding: float
    """The return of the instrument over the same bars, without costs."""
    start: int | None
    """When the first bar of the period opens. None without bars."""
    end: int | None
    """When the last bar of the period opens."""
    months: tuple[PeriodMonth, ...]

    @property
    def best(self) -> PeriodMonth | None:
        """The month with the highest return, the first of several. None without bars."""
        return max(self.months, key=lambda each: each.total_return, default=None)

    @property
    def worst(self) -> PeriodMonth | None:
        """The month with the lowest return, the first of several. None without bars."""
        return min(self.months, key=lambda each: each.total_return, default=None)


def period_of(
    spec: Spec, parameters: Mapping[str, Number], bars: Bars, setup: Setup, start: int, regular: Bars | None = None
) -> Period:
    """Returns what a strategy earned on the bars since `start`. It runs over the earlier bars too, without counting them."""
    strategy = compiled(spec, parameters)
    conditions = evaluate(strategy, bars, regular)
    run = simulate(bars, conditions, strategy.side, strategy.stops, setup)
    first = int(bars.time.searchsorted(start))
    whole = part_of(run, bars, first, len(bars))
    trades = run.trades
    counted = (trades.entry_index >= first) & (trades.reason != END)
    returns = value_returns(trades)[counted]
    return Period(
        whole.metrics.trades,
        whole.closed,
        whole.right,
        float(returns.mean()) if len(returns) else None,
        whole.metrics.sharpe,
        _return(run.equity, first, len(bars) - 1) if first < len(bars) else 0.0,
        _holding(bars, first) if first < len(bars) else 0.0,
        int(bars.time[first]) if first < len(bars) else None,
        int(bars.time[-1]) if first < len(bars) else None,
        tuple(_months(run.equity, bars, trades, first)),
    )


def _holding(bars: Bars, first: int) -> float:
    """The return from the close before a bar, where the period's equity begins too, to the last close."""
    before = bars.close[first - 1] if first else bars.open[0]
    return float(bars.close[-1] / before) - 1.0


def _months(equity: Values, bars: Bars, trades: Trades, first: int) -> list[PeriodMonth]:
    months = bars.time.astype("datetime64[s]").astype("datetime64[M]")
    found = []
    for month in np.unique(months[first:]):
        inside = np.flatnonzero(months == month)
        inside = inside[inside >= first]
        start, end = int(inside[0]), int(inside[-1])
        entered = (trades.entry_index >= start) & (trades.entry_index <= end)
        closed = entered & (trades.reason != END)
        right = closed & (trades.profit > 0.0)
        found.append(
            PeriodMonth(
                str(month),
                int(entered.sum()),
                int(right.sum()),
                int(closed.sum()),
                _return(equity, start, end),
            )
        )
    return found


def _return(equity: Values, start: int, end: int) -> float:
    """Returns the return of the bars from `start` to `end`, from the close before them; 0 if the equity was used up."""
    before = float(equity[start - 1]) if start else float(equity[start])
    return float(equity[end]) / before - 1.0 if before > 0.0 else 0.0


class MonthlyReturn(NamedTuple):
    """The change of the equity in a month, or in a year if `month` is 0. None if the equity before it was 0 or less."""

    year: int
    month: int
    share: float | None


def monthly_returns(equity: Values, bars: Bars) -> list[MonthlyReturn]:
    """Returns the return of each month that has bars, oldest first. A bar belongs to the month in which it closes.

    The return of a month is the change from the last close before it; the first month begins with the cash at the start.
    """
    return _returns(equity, _months_of(bars, "M"))


def yearly_returns(equity: Values, bars: Bars) -> dict[int, float | None]:
    """Returns the return of each year that has bars."""
    return {each.year: each.share for each in _returns(equity, _months_of(bars, "Y"))}


def _months_of(bars: Bars, unit: str) -> np.ndarray[tuple[int], np.dtype[np.datetime64]]:
    """Returns for each bar the month or the year in which it closes, in the time zone of its market.

    A bar of forex belongs to the trading day in which it closes.
    """
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    moments = np.where(ends > 0, ends - 1, bars.time)  # stocks outside the calendar's years have no bounds
    if bars.instrument.asset_class is AssetClass.FOREX:
        days = currency_days_at(moments, _WEEKEND)
        return np.where(days >= 0, days, moments // _DAY).astype("datetime64[D]").astype(f"datetime64[{unit}]")
    moments -= _BEHIND_UTC.get(bars.instrument.asset_class, 0)
    return moments.astype("datetime64[s]").astype(f"datetime64[{unit}]")


def _returns(equity: Values, periods: np.ndarray[tuple[int], np.dtype[np.datetime64]]) -> list[MonthlyReturn]:
    if not len(equity):
        return []
    last = np.append(np.flatnonzero(periods[1:] != periods[:-1]), len(periods) - 1)
    after = equity[last].tolist()
    before = [float(equity[0]), *after[:-1]]
    found = []
    for period, start, end in zip(periods[last].tolist(), before, after, strict=True):
        found.append(MonthlyReturn(period.year, period.month, end / start - 1.0 if start > 0.0 else None))
    return found
