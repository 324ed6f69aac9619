"""backtest: runs of strategies over past bars, and what they earned, as fractions (TradeStream's backtest-mcp)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.backtest.outcome import outcome_of
from openbell.backtest.rules import END, Setup
from openbell.backtest.runs import Backtest
from openbell.desk.research.strategies.desk import Chosen, chosen_before
from openbell.desk.research.strategies.strategy_advice import PERIODS
from openbell.market.bars import closed_at
from openbell.market.clock import iso, whole_date
from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InsufficientData,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.market.nearest import check_one_of
from openbell.market.plural import counted
from openbell.market.series import Series
from openbell.market.series_plan import missing
from openbell.protocol.call import Call, Result, data_source, on_bars
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.numbers import Computed
from openbell.protocol.result_fields import Foreign, From, mark, shaped
from openbell.protocol.service import Service
from openbell.protocol.tool import Absent, Arguments, Reads, Tool, without_default
from openbell.servers.spec_marks import mark_spec
from openbell.strategies.compiled import compiled
from openbell.strategies.errors import InvalidDateRange, InvalidPeriod, NoPerformance, NoSignal, UnknownStrategy

StrategyId = Annotated[str, Field(description="of get_top_strategies, or a spec's name")]
_ANY = (InvalidSymbol, UnknownSymbol, UnknownStrategy, StoreError, CallTimeout, DataError)


class TradeItem(TypedDict):
    """One trade."""

    trade_return: Annotated[Computed, Field(description="share of the value bought, after costs: 0.05 is 5 %")]
    entry_time: Annotated[str, Field(description="open of the bar")]
    exit_time: Annotated[str | None, Field(description="open of the bar; null if still open at the end")]


class EdgeShape(TypedDict):
    """Whether the timing of trades is better than luck."""

    edge_vs_holding: Annotated[
        Computed | None,
        From("vs_holding"),
        Field(description="probability, after tries, that timing beats holding as much; null below 20 trades"),
    ]
    edge_vs_random_timing: Annotated[
        Computed | None, From("vs_random_timing"), Field(description="same against its trades at random times")
    ]
    tries: Annotated[int, Field(description="strategies that were tried before this one was chosen")]


class OutcomeShape(TypedDict):
    """What a run came to: ratios, and what is not among the contract's fields."""

    win_rate: Annotated[
        Computed | None,
        From("metrics.win_rate"),
        Field(description="share: 0.5 is half of the trades; null without a trade"),
    ]
    sharpe_ratio: Annotated[
        Computed | None, From("metrics.sharpe"), Field(description="yearly; null if the equity never moved")
    ]
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
        From("metrics.annual_return"),
        Field(description="yearly return that compounds to total_return, missing bars not counted; 0.05 is 5 %"),
    ]
    exposure: Annotated[
        Computed | None,
        From("metrics.exposure"),
        Field(description="share of bars with a position: 0.5 is half of them"),
    ]
    profit_factor: Annotated[
        Computed | None,
        From("metrics.profit_factor"),
        Field(description="sum of profits / sum of losses; null without a loss"),
    ]
    average_trade_return: Annotated[Computed | None, Field(description="share, after costs: 0.05 is 5 %")]
    best_trade: TradeItem | None
    worst_trade: TradeItem | None
    average_bars_held: Annotated[Computed | None, From("metrics.average_bars")]
    average_days_held: Annotated[Computed | None, Field(description="days of 24 hours")]
    max_drawdown_from: Annotated[
        str | None, From("fall.highest"), Field(description="bar of the maximum; null if the equity never fell")
    ]
    max_drawdown_to: Annotated[str | None, From("fall.lowest"), Field(description="bar of the low")]
    max_drawdown_recovered_at: Annotated[
        str | None, From("fall.back"), Field(description="bar back at the maximum; null if not yet")
    ]


class BacktestAnswer(OutcomeShape, EdgeShape, Foreign):
    """The figures of a run; those that are undefined, such as those of trades without any, are null."""

    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]
    max_drawdown: Annotated[Computed, Field(description="share: 0.05 is a fall of 5 %")]
    trades: Annotated[int, From("metrics.trades")]
    timeframe: str
    parameters: dict[str, Computed]
    verdict: Annotated[str, Field(description="what edge_vs_holding and edge_vs_random_timing mean")]
    note: str
    data_source: str


class MonthReturnShape(TypedDict):
    """A month and its return."""

    month: Annotated[str, From("name")]
    total_return: Annotated[Computed, Field(description="share: 0.05 is 5 %")]


class MonthItem(MonthReturnShape):
    """One month of a strategy."""

    total_signals: Annotated[int, From("signals")]
    accuracy: Annotated[Computed | None, Field(description="share: 0.5 is half; null without a closed trade")]


class PeriodTotals(TypedDict):
    """A period as a whole."""

    sharpe: Annotated[Computed | None, Field(description="yearly; null if the equity never moved")]
    start: Annotated[str | None, Field(description="open of the first bar")]
    end: Annotated[str | None, Field(description="open of the last bar")]
    total_return: Annotated[Computed, Field(description="of the period; months compound to it; share, 0.05 is 5 %")]
    buy_and_hold_return: Annotated[
        Computed,
        From("holding"),
        Field(description="of the symbol over the same bars, without costs; share, 0.05 is 5 %"),
    ]
    beats_buy_and_hold: bool
    best_month: Annotated[MonthReturnShape | None, From("best")]
    worst_month: Annotated[MonthReturnShape | None, From("worst")]


class PerformanceAnswer(PeriodTotals, Foreign):
    """What a strategy has earned in a period."""

    total_signals: Annotated[int, From("signals")]
    accuracy: Annotated[Computed, Field(description="share: 0.5 is half")]
    avg_return: Annotated[Computed, Field(description="of a closed trade, after costs; share, 0.05 is 5 %")]
    parameters: Annotated[dict[str, Computed], Field(description="those that the search chose for the symbol")]
    performance_by_month: list[MonthItem]
    note: str
    data_source: str


def _day_schema(schema: dict[str, object]) -> None:
    without_default(schema)
    schema["format"] = "date"


Day = Annotated[str | Absent, Field(json_schema_extra=_day_schema)]


class BacktestInput(Arguments):
    """Input of run_backtest."""

    strategy_id: StrategyId
    symbol: str
    start_date: Day = None
    end_date: Day = None


class PerformanceInput(Arguments):
    """Input of get_historical_performance."""

    strategy_id: StrategyId
    symbol: Annotated[str | Absent, Field(json_schema_extra=without_default)] = None
    period: Annotated[str, Field(json_schema_extra={"enum": list(PERIODS)})] = "3m"
    force_refresh: Annotated[bool, Field(description="bypass the cache")] = False


async def run_backtest(call: Call, given: BacktestInput) -> Result[BacktestAnswer]:
    """Trade a strategy on the bars of both days and those between."""
    start, end = _days(given.start_date, given.end_date)
    if start is not None and start >= call.desk.bars.closed_until():
        raise InvalidDateRange(
            "start_date must be before the present: no bar has closed since", start_date=given.start_date
        )
    instrument = await call.desk.bars.find(given.symbol)
    chosen = await call.desk.strategies.choose(call.principal, given.strategy_id, instrument)
    strategy = compiled(chosen.spec, chosen.parameters)
    series = Series(instrument, chosen.timeframe)
    setup = call.desk.strategies.setup
    found = await call.desk.backtests.run(strategy, series, setup, start, end, unseen_from=chosen.unseen_from)
    bars, metrics = found.bars, found.metrics
    facts = await call.desk.facts(bars)
    assert found.timing, "a backtest of the desk has it"
    edge = found.timing.edge(chosen.tries)
    answer = shaped(
        BacktestAnswer,
        outcome_of(found),
        total_return=metrics.total_return or 0.0,
        max_drawdown=metrics.max_drawdown or 0.0,
        **shaped(EdgeShape, edge),
        verdict=edge.sentence(since_submission=chosen.submitted_at is not None),
        timeframe=chosen.timeframe_name,
        parameters=strategy.parameters,
        note=_note(chosen, found, setup),
        data_source=data_source(call, instrument, facts.sources),
    )
    if chosen.submitted_by:
        mark(answer, chosen.submitted_by)
    if not call.desk.settings.backtester:
        return Result(answer, on_bars(instrument, closed_at(bars), facts))
    read = on_bars(instrument, closed_at(bars), facts, f"the bars were read from {call.desk.store.name}")
    return Result(answer, replace(read, source="grpc"))


def _note(chosen: Chosen, found: Backtest, setup: Setup) -> str:
    """Returns the parameters, bars and costs of a run, the bars that do not test it, and what is missing of the bars."""
    bars = found.bars
    settings = ", ".join(f"{name}={value:g}" for name, value in chosen.parameters.items()) or "no parameters"
    used = (
        f"{settings}; {len(bars)} {chosen.timeframe_name} bars from {iso(int(bars.time[0]))} to {iso(closed_at(bars))}"
    )
    used += f"; fee {setup.fee:.3%}, slippage {setup.slippage:.3%}; it begins without a position"
    if END in found.run.trades.reason:
        used += ", and its last trade is open: it counts at the last close"
    gone = missing(bars)
    notes = (
        used,
        chosen.training_note(bars),
        f"{counted(gone, 'bar')} missing in that time" if gone else "",
        found.note,
    )
    return "; ".join(filter(None, notes))


def _days(start: str | None, end: str | None) -> tuple[int | None, int | None]:
    """Returns the start of the first day and the end of the last one. Raises `InvalidDateRange`."""
    first, last = _day(start and whole_date(start), "start_date"), _day(end, "end_date")
    if first is not None and last is not None and first >= last:
        raise InvalidDateRange("start_date must be before end_date", start_date=start, end_date=end)
    until = None if last is None else last + timedelta(days=1)
    return _epoch(first), _epoch(until)


def _day(text: str | None, name: str) -> date | None:
    if text is None:
        return None
    try:
        found = datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        raise InvalidDateRange(
            f"{name} must be a day such as 2026-01-31, not {text[:40]!r}", **{name: text[:40]}
        ) from None
    if not 1900 <= found.year < 3000:
        raise InvalidDateRange(f"{name} must be a day between 1900 and 2999", **{name: text})
    return found


def _epoch(day: date | None) -> int | None:
    return None if day is None else int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


async def get_historical_performance(call: Call, given: PerformanceInput) -> Result[PerformanceAnswer]:
    """Return what a strategy has earned in a period up to now, in all and by month."""
    check_one_of("period", given.period, PERIODS, InvalidPeriod)
    strategy = await call.desk.strategies.advice.strategy(call.principal, given.strategy_id, given.symbol)
    found, stretch = await call.desk.strategies.performance.of(strategy, given.period)
    made = strategy.implementation
    instrument, facts = parse(made.symbol), await call.desk.facts(stretch.bars)
    months = [
        shaped(MonthItem, each, accuracy=each.right / each.closed if each.closed else None) for each in found.months
    ]
    answer = shaped(
        PerformanceAnswer,
        found,
        beats_buy_and_hold=found.total_return > found.holding,
        accuracy=found.right / found.closed,
        avg_return=found.average_return or 0.0,
        parameters=made.parameters,
        performance_by_month=months,
        note=(
            f"{made.id}, {made.status.value}, on {made.timeframe} bars of {made.symbol}; "
            f"{chosen_before(made.trained_until)}. Trades that were entered in the period are counted, accuracy and "
            "avg_return are of those that were closed; sharpe and the returns of months include a position from before "
            "the period, which run_backtest does not have"
        ),
        data_source=data_source(call, instrument, facts.sources),
    )
    mark_spec(answer, strategy.known)
    return Result(answer, on_bars(instrument, stretch.until, facts))


TOOLS = (
    Tool(
        name="run_backtest",
        description=(
            "Run a backtest for a strategy configuration, from start_date to end_date, both included, beside buying and "
            "holding. A spec's name runs with its default parameters on daily bars, by default the newest 1,250."
        ),
        arguments=BacktestInput,
        returns=BacktestAnswer,
        handler=run_backtest,
        open_world=True,
        toolset="backtests",
        reads=Reads.BARS,
        errors=(*_ANY, InvalidDateRange, InsufficientData, BacktestTimeout, BacktesterUnavailable),
    ),
    Tool(
        name="get_historical_performance",
        description=(
            "Get historical performance metrics for a strategy: what it would have earned in the last period, after "
            "costs, in all and by month."
        ),
        arguments=PerformanceInput,
        returns=PerformanceAnswer,
        handler=get_historical_performance,
        open_world=True,
        toolset="backtests",
        reads=Reads.RECORDS,
        cache="cache_performance",
        errors=(*_ANY, InvalidPeriod, NoPerformance),
    ),
)


SERVICE = Service(
    name="backtest-mcp",
    command="backtest",
    title="Openbell backtests",
    instructions=(
        "Decisions are made at the close of a bar and filled at the next open, with the costs of paper trading. Returns are "
        "shares: 0.05 is 5 %."
    ),
    tools=TOOLS,
    opens_records=True,
    answers_early=True,
    dialect=EnvelopeDialect(
        {
            UnknownStrategy: "STRATEGY_NOT_FOUND",
            InvalidSymbol: "INVALID_SYMBOL",
            UnknownSymbol: "INVALID_SYMBOL",
            InvalidDateRange: "INVALID_DATE_RANGE",
            InvalidPeriod: "INVALID_PERIOD",
            InsufficientData: "INSUFFICIENT_DATA",
            BacktestTimeout: "BACKTEST_TIMEOUT",
            BacktesterUnavailable: "GRPC_ERROR",
            NoPerformance: "NO_PERFORMANCE_DATA",
            NoSignal: "NO_PERFORMANCE_DATA",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
            DataError: "INSUFFICIENT_DATA",
        },
        by_tool={"run_backtest": {CallTimeout: "BACKTEST_TIMEOUT"}},
    ),
)
