"""The types of the results, and the fields beside the contract's. Shares are fractions: 0.05 is 5 %."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from openbell.backtest.outcome import TradeOutcome, outcome_of
from openbell.backtest.periods import Month, Period
from openbell.backtest.runs import Backtest
from openbell.market.clock import iso
from openbell.protocol.numbers import Computed


class TradeItem(TypedDict):
    """One trade."""

    trade_return: Annotated[Computed, Field(description="share of the value bought, after costs: 0.05 is 5 %")]
    entry_time: Annotated[str, Field(description="open of the bar")]
    exit_time: Annotated[str | None, Field(description="open of the bar; null if still open at the end")]


class Outcome(TypedDict):
    """What a run came to: ratios, and what is not among the contract's fields."""

    win_rate: NotRequired[Annotated[Computed, Field(description="share: 0.5 is half of the trades")]]
    sharpe_ratio: NotRequired[Annotated[Computed, Field(description="yearly")]]
    start: Annotated[str, Field(description="open of the first bar")]
    end: Annotated[str, Field(description="open of the last bar")]
    initial_equity: Computed
    final_equity: Annotated[Computed, Field(description="an open position counts at the last close")]
    buy_and_hold_return: Annotated[
        Computed, Field(description="first open to last close of the same bars, without costs; share, 0.05 is 5 %")
    ]
    beats_buy_and_hold: Annotated[bool, Field(description="total_return is above buy_and_hold_return")]
    cagr: NotRequired[
        Annotated[
            Computed,
            Field(description="yearly return that compounds to total_return, missing bars not counted; 0.05 is 5 %"),
        ]
    ]
    exposure: NotRequired[Annotated[Computed, Field(description="share of bars with a position: 0.5 is half of them")]]
    profit_factor: NotRequired[
        Annotated[Computed, Field(description="sum of profits / sum of losses; left out without a loss")]
    ]
    average_trade_return: NotRequired[Annotated[Computed, Field(description="share, after costs: 0.05 is 5 %")]]
    best_trade: NotRequired[TradeItem]
    worst_trade: NotRequired[TradeItem]
    average_bars_held: NotRequired[Computed]
    average_days_held: NotRequired[Annotated[Computed, Field(description="days of 24 hours")]]
    max_drawdown_from: Annotated[str | None, Field(description="bar of the maximum; null if the equity never fell")]
    max_drawdown_to: Annotated[str | None, Field(description="bar of the low")]
    max_drawdown_recovered_at: Annotated[str | None, Field(description="bar back at the maximum; null if not yet")]


class BacktestAnswer(Outcome):
    """The figures of a run; those that are undefined without trades are left out."""

    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]
    max_drawdown: Annotated[Computed, Field(description="share: 0.05 is a fall of 5 %")]
    trades: int
    timeframe: str
    parameters: dict[str, Computed]
    note: str
    data_source: str


class MonthReturn(TypedDict):
    """A month and its return."""

    month: str
    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]


class MonthItem(MonthReturn):
    """One month of a strategy."""

    total_signals: int
    accuracy: NotRequired[Annotated[Computed, Field(description="share: 0.5 is half")]]


class PeriodTotals(TypedDict):
    """A period as a whole."""

    sharpe: NotRequired[Annotated[Computed, Field(description="yearly")]]
    start: NotRequired[Annotated[str, Field(description="open of the first bar")]]
    end: NotRequired[Annotated[str, Field(description="open of the last bar")]]
    total_return: Annotated[Computed, Field(description="of the period; months compound to it; share, 0.05 is 5 %")]
    buy_and_hold_return: Annotated[
        Computed, Field(description="of the symbol over the same bars, without costs; share, 0.05 is 5 %")
    ]
    beats_buy_and_hold: bool
    best_month: NotRequired[MonthReturn]
    worst_month: NotRequired[MonthReturn]


class PerformanceAnswer(PeriodTotals):
    """What a strategy has earned in a period."""

    total_signals: int
    accuracy: Annotated[Computed, Field(description="share: 0.5 is half")]
    avg_return: Annotated[Computed, Field(description="of a closed trade, after costs; share, 0.05 is 5 %")]
    parameters: Annotated[dict[str, Computed], Field(description="those that the search chose for the symbol")]
    performance_by_month: list[MonthItem]
    note: str
    data_source: str


def outcome_fields(found: Backtest) -> Outcome:
    """Returns what a run came to."""
    outcome, metrics, bars = outcome_of(found), found.metrics, found.bars
    fall = outcome.fall
    fields: Outcome = {
        "start": iso(int(bars.time[0])),
        "end": iso(int(bars.time[-1])),
        "initial_equity": outcome.first_equity,
        "final_equity": outcome.last_equity,
        "buy_and_hold_return": outcome.holding,
        "beats_buy_and_hold": outcome.beats_holding,
        "max_drawdown_from": None if fall is None else iso(fall.highest),
        "max_drawdown_to": None if fall is None else iso(fall.lowest),
        "max_drawdown_recovered_at": None if fall is None or fall.back is None else iso(fall.back),
    }
    if metrics.sharpe is not None:
        fields["sharpe_ratio"] = metrics.sharpe
    if metrics.win_rate is not None:
        fields["win_rate"] = metrics.win_rate
    if metrics.annual_return is not None:
        fields["cagr"] = metrics.annual_return
    if metrics.exposure is not None:
        fields["exposure"] = metrics.exposure
    if metrics.profit_factor is not None:
        fields["profit_factor"] = metrics.profit_factor
    if metrics.average_bars is not None:
        fields["average_bars_held"] = metrics.average_bars
    if outcome.average is not None and outcome.average_days is not None and outcome.best and outcome.worst:
        fields["average_trade_return"] = outcome.average
        fields["average_days_held"] = outcome.average_days
        fields["best_trade"], fields["worst_trade"] = _trade(outcome.best), _trade(outcome.worst)
    return fields


def _trade(trade: TradeOutcome) -> TradeItem:
    return {
        "trade_return": trade.share,
        "entry_time": iso(trade.entered),
        "exit_time": None if trade.left is None else iso(trade.left),
    }


def period_fields(found: Period) -> PeriodTotals:
    """Returns a period as a whole."""
    fields: PeriodTotals = {
        "total_return": found.total_return,
        "buy_and_hold_return": found.holding,
        "beats_buy_and_hold": found.total_return > found.holding,
    }
    if found.sharpe is not None:
        fields["sharpe"] = found.sharpe
    if found.start is not None and found.end is not None:
        fields["start"], fields["end"] = iso(found.start), iso(found.end)
    if found.best and found.worst:
        fields["best_month"], fields["worst_month"] = _month(found.best), _month(found.worst)
    return fields


def _month(month: Month) -> MonthReturn:
    return {"month": month.name, "total_return": month.total_return}
