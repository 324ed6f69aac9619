"""run_backtest and get_historical_performance."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Annotated

from pydantic import Field

from openbell.backtest.errors import BacktesterUnavailable, BacktestTimeout
from openbell.backtest.rules import END, Setup
from openbell.backtest.runs import Backtest
from openbell.desk.research.strategies.desk import Chosen, chosen_before
from openbell.desk.research.strategies.history import PERIODS
from openbell.market.bars import closed_at
from openbell.market.clock import iso, whole_date
from openbell.market.errors import CallTimeout, DataError, InsufficientData, InvalidSymbol, StoreError, UnknownSymbol
from openbell.market.instruments import parse
from openbell.market.nearest import did_you_mean
from openbell.market.plural import counted
from openbell.market.series import Series
from openbell.market.series_plan import missing
from openbell.protocol.call import Call, Result, on_bars
from openbell.protocol.tool import Absent, Arguments, Reads, Tool, without_default
from openbell.protocol.truth import data_source
from openbell.servers.backtest.shapes import (
    BacktestAnswer,
    MonthItem,
    PerformanceAnswer,
    outcome_fields,
    period_fields,
)
from openbell.strategies.compiled import compiled
from openbell.strategies.errors import InvalidDateRange, InvalidPeriod, NoPerformance, UnknownStrategy

StrategyId = Annotated[str, Field(description="of get_top_strategies, or a spec's name")]


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
    found = await call.desk.backtests.run(strategy, series, setup, start, end)
    bars, metrics = found.bars, found.metrics
    facts = await call.desk.facts(bars)
    answer: BacktestAnswer = {
        "total_return": metrics.total_return or 0.0,
        "max_drawdown": metrics.max_drawdown or 0.0,
        "trades": metrics.trades,
        **outcome_fields(found),
        "timeframe": chosen.timeframe_name,
        "parameters": dict(strategy.parameters),
        "note": _note(chosen, found, setup),
        "data_source": data_source(call.desk, instrument, facts.sources),
    }
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
        raise InvalidDateRange(f"{name} must be a day such as 2026-01-31, not {text[:40]!r}") from None
    if not 1900 <= found.year < 3000:
        raise InvalidDateRange(f"{name} must be a day between 1900 and 2999")
    return found


def _epoch(day: date | None) -> int | None:
    return None if day is None else int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


async def get_historical_performance(call: Call, given: PerformanceInput) -> Result[PerformanceAnswer]:
    """Return what a strategy has earned in a period up to now, in all and by month."""
    if given.period not in PERIODS:
        listed = f"{', '.join(PERIODS[:-1])} or {PERIODS[-1]}"
        raise InvalidPeriod(f"period must be {listed}{did_you_mean(given.period, PERIODS)}")
    strategy = await call.desk.strategies.opinions.strategy(call.principal, given.strategy_id, given.symbol)
    found, stretch = await call.desk.strategies.performance.of(strategy, given.period)
    made = strategy.implementation
    instrument, facts = parse(made.symbol), await call.desk.facts(stretch.bars)
    months: list[MonthItem] = [
        {
            "month": each.name,
            "total_signals": each.signals,
            "accuracy": each.right / each.closed if each.closed else None,
            "total_return": each.total_return,
        }
        for each in found.months
    ]
    answer: PerformanceAnswer = {
        "total_signals": found.signals,
        "accuracy": found.right / found.closed,
        "avg_return": found.average_return or 0.0,
        "parameters": dict(made.parameters),
        "performance_by_month": months,
        **period_fields(found),
        "note": (
            f"{made.id}, {made.status.value}, on {made.timeframe} bars of {made.symbol}; "
            f"{chosen_before(made.trained_until)}. Trades that were entered in the period are counted, accuracy and "
            "avg_return are of those that were closed; sharpe and the returns of months include a position from before "
            "the period, which run_backtest does not have"
        ),
        "data_source": data_source(call.desk, instrument, facts.sources),
    }
    return Result(answer, on_bars(instrument, stretch.until, facts))


_ANY = (InvalidSymbol, UnknownSymbol, UnknownStrategy, StoreError, CallTimeout, DataError)

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
        toolset="backtests",
        reads=Reads.RECORDS,
        cache="cache_performance",
        errors=(*_ANY, InvalidPeriod, NoPerformance),
    ),
)
