"""strategy: rankings, signals and the consensus of strategies (TradeStream's strategy-mcp)."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field

from openbell.desk.research.strategies.strategy_advice import METRICS, Ranked, outdated_note
from openbell.market.clock import iso
from openbell.market.errors import (
    CallTimeout,
    DataError,
    InputError,
    InvalidSymbol,
    Refused,
    StoreError,
    StoreTimeout,
    UnknownSymbol,
)
from openbell.market.instruments import parse
from openbell.market.nearest import check_one_of
from openbell.market.price_history import percent_change
from openbell.protocol.call import Basis, Call, Result, on_bars
from openbell.protocol.dialects import EnvelopeDialect
from openbell.protocol.numbers import Computed, Exact
from openbell.protocol.result_fields import Foreign, From, Pagination, Stated, pagination, shaped, stated
from openbell.protocol.service import Service
from openbell.protocol.tool import Arguments, Reads, Tool
from openbell.servers.spec_marks import mark_spec
from openbell.strategies.consensus import Action, Opinion
from openbell.strategies.errors import InvalidMetric, NoActiveStrategies, NoSignal, NoStrategies, UnknownStrategy

Symbol = Annotated[str, Field(description="Trading pair; or a stock such as AAPL")]
Refresh = Annotated[bool, Field(description="Bypass cache and fetch fresh data")]
_OUTDATED = ". Its bars have changed: it is being judged again, and has no vote until then"
_ANY = (InvalidSymbol, UnknownSymbol, StoreError, CallTimeout, DataError)


class Strategy(Foreign):
    """One strategy of a ranking."""

    strategy_id: Annotated[str, From("implementation.id")]
    name: Annotated[str, From("known.spec.name")]
    timeframe: Annotated[str, From("implementation.timeframe")]
    status: Annotated[str, From("implementation.status")]
    score: Computed
    sharpe: Computed
    accuracy: Computed
    signals_count: Annotated[int, From("figures.untrained.trades")]
    signal: Annotated[str | None, Field(description="what it advises now, as get_strategy_signal; null: signal_note")]
    since: NotRequired[Annotated[str, Field(description="close of the bar of its last entry or exit")]]
    signal_note: NotRequired[Annotated[str, Field(description="why it has no signal")]]


class StrategyPage(Stated):
    """Strategies, the best first."""

    items: list[Strategy]
    pagination: Pagination
    note: NotRequired[Annotated[str, Field(description="that none has passed validation, or the search is not done")]]


class SinceSignal(Foreign):
    """How the price has moved since a signal, and who has submitted the spec."""

    price_at_signal: NotRequired[Annotated[Exact, Field(description="close of that bar")]]
    price: NotRequired[Annotated[Exact, Field(description="newest close of the strategy's bars")]]
    price_time: NotRequired[Annotated[str, Field(description="when that bar closed; get_current_price has newer ones")]]
    change_since_signal_pct: NotRequired[
        Annotated[Computed, Field(description="price against price_at_signal, in per cent: 5 is 5 %")]
    ]


class SignalAnswer(Stated, SinceSignal):
    """What a strategy advises."""

    signal: Annotated[str, From("figures.action"), Field(json_schema_extra={"enum": [each.value for each in Action]})]
    confidence: Annotated[Computed, From("figures.confidence")]
    triggered_at: Annotated[
        str,
        From("figures.triggered_at"),
        Field(description="close of the bar of its last entry or exit", json_schema_extra={"format": "date-time"}),
    ]
    parameters: Annotated[dict[str, Computed], From("implementation.parameters")]
    strategy_id: Annotated[str, From("implementation.id")]
    timeframe: Annotated[str, From("implementation.timeframe")]
    status: Annotated[
        str,
        From("implementation.status"),
        Field(description="VALIDATED and DEPLOYED passed validation, CANDIDATE did not"),
    ]
    note: str


class ConsensusAnswer(Stated):
    """What the active strategies of a symbol advise."""

    bullish_count: Annotated[int, From("bullish")]
    bearish_count: Annotated[int, From("bearish")]
    neutral_count: Annotated[int, From("neutral")]
    consensus: Annotated[str, From("opinion"), Field(json_schema_extra={"enum": [each.value for each in Opinion]})]
    confidence: Computed


class TopInput(Arguments):
    """Input of get_top_strategies."""

    symbol: Annotated[str, Field(description="Trading pair e.g. ETH/USD; or a stock such as AAPL")]
    limit: Annotated[int, Field(ge=1, le=100, description="Number of strategies to return per page")] = 5
    offset: Annotated[int, Field(ge=0, le=100_000_000, description="Number of strategies to skip for pagination")] = 0
    metric: Annotated[str, Field(json_schema_extra={"enum": list(METRICS)})] = "sharpe"
    force_refresh: Refresh = False


class SignalInput(Arguments):
    """Input of get_strategy_signal."""

    strategy_id: Annotated[str, Field(description="Strategy identifier: of get_top_strategies, or a spec's name")]
    symbol: Symbol
    force_refresh: Refresh = False


class ConsensusInput(Arguments):
    """Input of get_strategy_consensus."""

    symbol: Symbol
    force_refresh: Refresh = False


async def get_top_strategies(call: Call, given: TopInput) -> Result[StrategyPage]:
    """Return a page of the strategies of a symbol, the best by a metric first."""
    check_one_of("metric", given.metric, METRICS, InvalidMetric)
    ranked = await call.desk.strategies.advice.ranking(call.principal, given.symbol, given.metric)
    page = ranked[given.offset : given.offset + given.limit]
    basis, source = await _basis(call, given.symbol, ranked)
    shown: StrategyPage = {
        "items": [_item(call, each, given.metric) for each in page],
        "pagination": pagination(given.offset, given.limit, len(ranked)),
        **source,  # type: ignore[typeddict-item]
    }
    advice = call.desk.strategies.advice
    pending = advice.pending(call.principal, parse(given.symbol))
    if notes := list(filter(None, (advice.validation_note(ranked), pending))):
        shown["note"] = "; ".join(notes)
    return Result(shown, basis, partial=pending is not None)


def _item(call: Call, each: Ranked, metric: str) -> Strategy:
    figures, why_not = each.figures, call.desk.strategies.advice.why_no_signal(each)
    item = shaped(
        Strategy,
        each,
        score=each.score(metric) or 0.0,
        sharpe=figures.untrained.sharpe or 0.0,
        accuracy=figures.untrained.accuracy or 0.0,
        signal=None if why_not else figures.action,
        since=None if why_not else figures.triggered_at,
        signal_note=why_not,
    )
    mark_spec(item, each.known)
    return item


async def get_strategy_signal(call: Call, given: SignalInput) -> Result[SignalAnswer]:
    """Return what a strategy advises at the last closed bar."""
    found = await call.desk.strategies.advice.strategy(call.principal, given.strategy_id, given.symbol)
    figures, made = found.figures, found.implementation
    advice = call.desk.strategies.advice
    why_not = advice.why_no_signal(found)
    if why_not or figures.action is None or figures.triggered_at is None:
        raise NoSignal(why_not or "", strategy_id=made.id)
    part = figures.untrained
    since = iso(made.trained_until)
    basis, source = await _basis(call, given.symbol, [found])
    then, now, end = await advice.since_signal(found) or (None, None, None)
    answer = shaped(
        SignalAnswer,
        found,
        note=(
            f"{made.id}, {made.status.value}, on {made.timeframe} bars. Confidence is (right + 1) / (closed + 2): "
            f"{part.right} of {part.closed} trades closed since training, which ended at {since}, made a profit"
            + (_OUTDATED if found.outdated else "")
        ),
        price_at_signal=then,
        price=now,
        price_time=end,
        change_since_signal_pct=None if then is None or now is None else percent_change(then, now),
        **source,
    )
    mark_spec(answer, found.known)
    return Result(answer, basis)


async def get_strategy_consensus(call: Call, given: ConsensusInput) -> Result[ConsensusAnswer]:
    """Return the votes of the validated and deployed strategies of a symbol."""
    found, voters = await call.desk.strategies.advice.consensus(call.principal, given.symbol)
    basis, source = await _basis(call, given.symbol, voters)
    return Result(shaped(ConsensusAnswer, found, **source), basis)


async def _basis(call: Call, symbol: str, strategies: list[Ranked]) -> tuple[Basis, Stated]:
    """Returns the basis of figures, and what payloads state. Of several series, the age is that of the oldest one."""
    instrument, advice = parse(symbol), call.desk.strategies.advice
    facts = await advice.facts(each.implementation for each in strategies)
    until = min((each.figures.until for each in strategies), default=None)
    outdated = outdated_note(sum(each.outdated for each in strategies))
    note = "; ".join(filter(None, (advice.pending(call.principal, instrument), outdated))) or None
    return on_bars(instrument, until, facts, note), stated(call, instrument, facts.sources)


def _searched(call: Call, given: TopInput | SignalInput | ConsensusInput) -> str | None:
    """Returns how far the search of a symbol is; None if none is running."""
    pending = call.desk.strategies.advice.pending(call.principal, parse(given.symbol))
    if call.desk.answers_early:
        return pending and f"{pending}; the search continues while this server runs"
    return pending and (
        f"{pending.removesuffix(': ask again')}, and a search that is cut off begins anew: set OPENBELL_TIMEOUT to 120, or "
        "run openbell up, which searches in the background"
    )


TOOLS = (
    Tool(
        name="get_top_strategies",
        description=(
            "Fetch top N strategies for a symbol ranked by performance score. The score is the metric. Figures are of bars "
            "after those that chose its parameters, after costs; status CANDIDATE means that it failed validation. signal "
            "is what it advises now."
        ),
        arguments=TopInput,
        returns=StrategyPage,
        handler=get_top_strategies,
        open_world=True,
        late=_searched,
        toolset="strategies",
        reads=Reads.RECORDS,
        cache="cache_strategies",
        errors=(*_ANY, InvalidMetric, NoStrategies),
    ),
    Tool(
        name="get_strategy_signal",
        description=(
            "Get the current signal from a specific strategy for a symbol: BUY while it holds a position (triggered_at says "
            "since when), SELL for 5 bars after it left, else HOLD."
        ),
        arguments=SignalInput,
        returns=SignalAnswer,
        handler=get_strategy_signal,
        open_world=True,
        late=_searched,
        toolset="strategies",
        reads=Reads.RECORDS,
        cache="cache_signal",
        errors=(*_ANY, UnknownStrategy, NoSignal),
    ),
    Tool(
        name="get_strategy_consensus",
        description=(
            "Get aggregated consensus across all active strategies for a symbol. Active are VALIDATED and DEPLOYED ones; "
            "50 % of the votes make BUY or SELL, 70 % STRONG_."
        ),
        arguments=ConsensusInput,
        returns=ConsensusAnswer,
        handler=get_strategy_consensus,
        late=_searched,
        toolset="strategies",
        reads=Reads.RECORDS,
        cache="cache_consensus",
        errors=(*_ANY, NoActiveStrategies),
    ),
)


SERVICE = Service(
    name="strategy-mcp",
    command="strategy",
    title="Openbell strategies",
    instructions=(
        "Figures are of bars that were not used to choose a strategy's parameters, after fees and slippage. A strategy is "
        "CANDIDATE until it passes validation; only VALIDATED and DEPLOYED ones count in the consensus."
    ),
    tools=TOOLS,
    opens_records=True,
    answers_early=True,
    searches=True,
    dialect=EnvelopeDialect(
        {
            InvalidSymbol: "INVALID_SYMBOL",
            InvalidMetric: "INVALID_METRIC",
            UnknownStrategy: "STRATEGY_NOT_FOUND",
            NoSignal: "NO_SIGNAL",
            NoStrategies: "SYMBOL_NOT_FOUND",
            UnknownSymbol: "SYMBOL_NOT_FOUND",
            NoActiveStrategies: "NO_ACTIVE_STRATEGIES",
            InputError: "INVALID_PARAMETER",
            CallTimeout: "TIMEOUT",
            StoreTimeout: "TIMEOUT",
            StoreError: "DATABASE_ERROR",
            Refused: "UNAUTHORIZED",
            DataError: "NOT_FOUND",
        },
        by_tool={
            # These have no code for an unknown symbol: nothing can be said about it.
            "get_strategy_signal": {UnknownSymbol: "NO_SIGNAL"},
            "get_strategy_consensus": {UnknownSymbol: "NO_ACTIVE_STRATEGIES"},
        },
    ),
)
