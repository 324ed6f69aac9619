"""The types of the results, and the fields beside the contract's. Shares are fractions: 0.05 is 5 %."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from openbell.backtest.outcome import Period, PeriodMonth, TradeOutcome, outcome_of
from openbell.backtest.runs import Backtest
from openbell.market.clock import iso
from openbell.protocol.numbers import Computed


class TradeItem(TypedDict):
    """One trade."""

    trade_return: Annotated[Computed, Field(description="share of the value bought, after costs: 0.05 is 5 %")]
    entry_time: Annotated[str, Field(description="open of the bar")]
    exit_time: Annotated[str | None, Field(description="open of the bar; null if still open at the end")]


class OutcomeShape(TypedDict):
    """What a run came to: ratios, and what is not among the contract's fields."""

    win_rate: Annotated[Computed | None, Field(description="share: 0.5 is half of the trades; null without a trade")]
    sharpe_ratio: Annotated[Computed | None, Field(description="yearly; null if the equity never moved")]
    start: Annotated[str, Field(description="open of the first bar")]
    end: Annotated[str, Field(description="open of the last bar")]
    initial_equity: Computed
    final_equity: Annotated[Computed, Field(description="an open position counts at the last close")]
    buy_and_hold_return: Annotated[
        Computed, Field(description="first open to last close of the same bars, without costs; share, 0.05 is 5 %")
    ]
    beats_buy_and_hold: Annotated[bool, Field(description="total_return is above buy_and_hold_return")]
    cagr: Annotated[
        Computed | None,
        Field(description="yearly return that compounds to total_return, missing bars not counted; 0.05 is 5 %"),
    ]
    exposure: Annotated[Computed | None, Field(description="share of bars with a position: 0.5 is half of them")]
    profit_factor: Annotated[Computed | None, Field(description="sum of profits / sum of losses; null without a loss")]
    average_trade_return: Annotated[Computed | None, Field(description="share, after costs: 0.05 is 5 %")]
    best_trade: TradeItem | None
    worst_trade: TradeItem | None
    average_bars_held: Computed | None
    average_days_held: Annotated[Computed | None, Field(description="days of 24 hours")]
    max_drawdown_from: Annotated[str | None, Field(description="bar of the maximum; null if the equity never fell")]
    max_drawdown_to: Annotated[str | None, Field(description="bar of the low")]
    max_drawdown_recovered_at: Annotated[str | None, Field(description="bar back at the maximum; null if not yet")]


class BacktestAnswer(OutcomeShape):
    """The figures of a run; those that are undefined, such as those of trades without any, are null."""

    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]
    max_drawdown: Annotated[Computed, Field(description="share: 0.05 is a fall of 5 %")]
    trades: int
    timeframe: str
    parameters: dict[str, Computed]
    note: str
    data_source: str


class MonthReturnShape(TypedDict):
    """A month and its return."""

    month: str
    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]


class MonthItem(MonthReturnShape):
    """One month of a strategy."""

    total_signals: int
    accuracy: Annotated[Computed | None, Field(description="share: 0.5 is half; null without a closed trade")]


class PeriodTotals(TypedDict):
    """A period as a whole."""

    sharpe: Annotated[Computed | None, Field(description="yearly; null if the equity never moved")]
    start: Annotated[str | None, Field(description="open of the first bar")]
    end: Annotated[str | None, Field(description="open of the last bar")]
    total_return: Annotated[Computed, Field(description="of the period; months compound to it; share, 0.05 is 5 %")]
    buy_and_hold_return: Annotated[
        Computed, Field(description="of the symbol over the same bars, without costs; share, 0.05 is 5 %")
    ]
    beats_buy_and_hold: bool
    best_month: MonthReturnShape | None
    worst_month: MonthReturnShape | None


class PerformanceAnswer(PeriodTotals):
    """What a strategy has earned in a period."""

    total_signals: int
    accuracy: Annotated[Computed, Field(description="share: 0.5 is half")]
    avg_return: Annotated[Computed, Field(description="of a closed trade, after costs; share, 0.05 is 5 %")]
    parameters: Annotated[dict[str, Computed], Field(description="those that the search chose for the symbol")]
    performance_by_month: list[MonthItem]
    note: str
    data_source: str


def outcome_fields(found: Backtest) -> OutcomeShape:
    """Returns what a run came to."""
    outcome, metrics, bars = outcome_of(found), found.metrics, found.bars
    fall = outcome.fall
    return {
        "win_rate": metrics.win_rate,
        "sharpe_ratio": metrics.sharpe,
        "start": iso(int(bars.time[0])),
        "end": iso(int(bars.time[-1])),
        "initial_equity": outcome.first_equity,
        "final_equity": outcome.last_equity,
        "buy_and_hold_return": outcome.holding,
        "beats_buy_and_hold": outcome.beats_holding,
        "max_drawdown_from": None if fall is None else iso(fall.highest),
        "max_drawdown_to": None if fall is None else iso(fall.lowest),
        "max_drawdown_recovered_at": None if fall is None or fall.back is None else iso(fall.back),
        "cagr": metrics.annual_return,
        "exposure": metrics.exposure,
        "profit_factor": metrics.profit_factor,
        "average_trade_return": outcome.average,
        "best_trade": _trade(outcome.best),
        "worst_trade": _trade(outcome.worst),
        "average_bars_held": metrics.average_bars,
        "average_days_held": outcome.average_days,
    }


def _trade(trade: TradeOutcome | None) -> TradeItem | None:
    if trade is None:
        return None
    return {
        "trade_return": trade.share,
        "entry_time": iso(trade.entered),
        "exit_time": None if trade.left is None else iso(trade.left),
    }


def period_fields(found: Period) -> PeriodTotals:
    """Returns a period as a whole."""
    return {
        "sharpe": found.sharpe,
        "start": None if found.start is None else iso(found.start),
        "end": None if found.end is None else iso(found.end),
        "total_return": found.total_return,
        "buy_and_hold_return": found.holding,
        "beats_buy_and_hold": found.total_return > found.holding,
        "best_month": _month(found.best),
        "worst_month": _month(found.worst),
    }


def _month(month: PeriodMonth | None) -> MonthReturnShape | None:
    return None if month is None else {"month": month.name, "total_return": month.total_return}
