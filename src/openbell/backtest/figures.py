"""The figures of a backtest as text, each with its meaning in one line."""

from __future__ import annotations

from typing import NamedTuple

from openbell.backtest.runs import Backtest


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
