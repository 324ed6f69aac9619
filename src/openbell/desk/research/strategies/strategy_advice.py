"""What strategies advise about a symbol now: rankings, single signals the consensus; and what strategies have earned."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from openbell.backtest.outcome import Period, period_of
from openbell.backtest.rules import Setup
from openbell.backtest.search import FEWEST_BARS
from openbell.desk.bars.facts import bar_facts
from openbell.desk.bars.service import BarService
from openbell.desk.research.strategies.figures import FigureService, StrategyFigures, is_outdated, vote_of
from openbell.desk.research.strategies.searching import SearchService
from openbell.desk.research.strategies.series_bars import (
    SEARCHED,
    SeriesBars,
    bars_since,
    is_current,
    newest_bars,
    series_named,
)
from openbell.desk.research.strategies.specs import KnownSpec, SpecService
from openbell.desk.research.workers import Workers
from openbell.market.bars import closed_at
from openbell.market.clock import iso
from openbell.market.errors import DataError, OpenbellError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.plural import counted
from openbell.market.provenance import BarFacts
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.consensus import Consensus, consensus_of
from openbell.strategies.errors import (
    NoActiveStrategies,
    NoPerformance,
    NoSignal,
    NoStrategies,
    UnknownSpec,
    UnknownStrategy,
)
from openbell.strategies.implementations import Implementation, ImplementationStatus, one_of_each

METRICS = ("sharpe", "accuracy", "return")
_PATIENCE = 0.7
"""Seconds that a call waits for a search if it need not have all of it.

The first call of a process also loads specs and modules, 0.2 to 0.5 s: together they stay below 1.5 s.
"""
_MOST_ASKED = 1_000
"""Symbols that are kept of those that a principal has asked for."""
FEWEST_RANKED = 5
"""Closed trades that a strategy needs to be ranked: fewer say nothing."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """An implementation with its figures."""

    implementation: Implementation
    known: KnownSpec
    figures: StrategyFigures

    @property
    def outdated(self) -> bool:
        """Whether its bars have changed since it was judged; see `is_outdated`."""
        return is_outdated(self.implementation, self.figures)

    def score(self, metric: str) -> float | None:
        """Returns the figure of a metric since its parameters were chosen; None if it is undefined."""
        part = self.figures.untrained
        return {"sharpe": part.sharpe, "accuracy": part.accuracy, "return": part.total_return}[metric]


@dataclass(frozen=True, slots=True)
class AdviceServices:
    """What advice is made from."""

    bars: BarService
    specs: SpecService
    searching: SearchService
    figures: FigureService
    settle: Callable[[], Awaitable[None]]
    """Brings the records of a scenario up to date before they are read."""


class StrategyAdvice:
    """Answers questions about the strategies of a symbol."""

    def __init__(self, services: AdviceServices, early: Callable[[], bool], *, simulated: bool) -> None:
        """`early` returns True if calls are answered with what is ready."""
        self._settle = services.settle
        self._bars = services.bars
        self._specs = services.specs
        self._searching = services.searching
        self._asked: dict[str, dict[str, None]] = {}
        self._figures = services.figures
        self._early = early
        self._expected = ", as is expected on simulated prices" if simulated else ""

    @property
    def patience(self) -> float | None:
        """The seconds that a call waits for what takes long; None if it waits for all.

        With a fixed clock it waits for all, because the same question must have the same answer.
        """
        return _PATIENCE if self._early() and self._bars.clock.moving else None

    async def specs(self, principal: str) -> dict[str, KnownSpec]:
        """Returns the specs of a principal by id."""
        return {each.id: each for each in await self._specs.all(principal)}

    async def ranking(self, principal: str, symbol: str, metric: str) -> list[Ranked]:
        """Returns the strategies of a symbol that are not retired, the best first; none while the first search runs.

        Those with fewer than five closed trades since their parameters were chosen are left out. Raises `NoStrategies`.
        """
        instrument = await self._bars.find(symbol)
        found = await self.on(principal, instrument)
        ranked = [
            each
            for each in found
            if each.figures.untrained.closed >= FEWEST_RANKED and all(each.score(name) is not None for name in METRICS)
        ]
        if not ranked and not self.pending(principal, instrument):
            more = "openbell import adds more" if self._bars.feed.source is None else "openbell backfill gets more"
            raise NoStrategies(
                f"none of {counted(len(found), 'strategy', 'strategies')} of {instrument} has closed {FEWEST_RANKED} trades "
                f"since training; nothing is tried with fewer than {FEWEST_BARS} bars ({more})",
                symbol=instrument.symbol,
            )
        return sorted(ranked, key=lambda each: (-(each.score(metric) or 0.0), each.implementation.id))

    def validation_note(self, ranked: list[Ranked]) -> str | None:
        """Returns a note if none of some strategies has passed validation."""
        if not ranked or any(each.implementation.status.active for each in ranked):
            return None
        return f"none of {counted(len(ranked), 'strategy', 'strategies')} has passed validation{self._expected}"

    async def on(self, principal: str, instrument: Instrument, *, wait: bool = False) -> list[Ranked]:
        """Returns the strategies of a symbol that are not retired, after a search for those that were not tried yet.

        With a moving clock a call waits for the first search of a series that has new bars, but not for long if it is
        answered early and `wait` is False; `pending` names those that it has not waited for. With a fixed clock, and in a
        process that ends with its answer, as `openbell call` does, it waits for all.
        """
        await self._settle()
        self._note_asked(principal, instrument)
        waiting = [Series(instrument, timeframe) for timeframe in SEARCHED]
        failure: OpenbellError | None = None
        early = None if wait else _deadline(self.patience)
        before = await self._found(principal, instrument, early)
        goes_on = self._early() and self._bars.clock.moving  # a search may run on after the answer
        known = goes_on and any(not each.outdated for each in before)
        # With strategies to answer with, a search of others is not waited for long.
        until = early or _deadline(_PATIENCE if known else None)
        while waiting:
            series = waiting.pop(0)
            try:
                async with asyncio.timeout_at(until):
                    searched = await self._searching.ensure(principal, series)
            except TimeoutError:
                if not known:  # a search of the next series would slow down this one
                    return before
                continue
            except (DataError, UnknownSymbol) as error:
                failure = error  # the series is not there; another timeframe may be
                continue
            if searched and goes_on and await self._has_new_bars(series):
                break
        ranked = await self._found(principal, instrument, early)
        if failure is not None and not ranked:
            raise failure
        if self._searching.writes:  # otherwise nothing may run on after the answer: the next call searches
            for series in waiting:
                self._searching.begin(principal, series)
        return ranked

    def asked_for(self, principal: str) -> frozenset[str]:
        """Returns the symbols that a principal has asked this process for, the newest of them."""
        return frozenset(self._asked.get(principal, ()))

    def _note_asked(self, principal: str, instrument: Instrument) -> None:
        symbols = self._asked.setdefault(principal, {})
        symbols.pop(instrument.symbol, None)
        symbols[instrument.symbol] = None
        if len(symbols) > _MOST_ASKED:
            del symbols[next(iter(symbols))]

    async def _found(self, principal: str, instrument: Instrument, until: float | None) -> list[Ranked]:
        """Returns the strategies of a symbol that were found so far, are not retired, and have figures by then."""
        found = await self._searching.implementations(principal, symbol=instrument.symbol)
        wanted = [each for each in found if each.status is not ImplementationStatus.RETIRED]
        return await self.ranked(principal, wanted, until and max(0.0, until - asyncio.get_running_loop().time()))

    async def _has_new_bars(self, series: Series) -> bool:
        """Returns False if the signals of a series are old, so that its strategies have no vote."""
        return is_current(series, (await newest_bars(self._bars, series)).until, self._bars.clock.epoch())

    def pending(self, principal: str, instrument: Instrument) -> str | None:
        """Returns a note about the searches and figures of a symbol that are not finished; None if there are none."""
        running = []
        for timeframe in SEARCHED:
            series = Series(instrument, timeframe)
            if self._searching.is_running(principal, series):
                progress = self._searching.progress(principal, series)
                tried = f" ({progress.done} of {progress.total} tried)" if progress else ""
                running.append(f"{name_of(timeframe, SHORT)} bars{tried}")
        if running:
            return f"strategies on {' and '.join(running)} are still being searched: ask again"
        computed = self._figures.computes(instrument.symbol)
        return "the figures of strategies are still being computed: ask again" if computed else None

    async def judge_again(self, principal: str, outdated: Iterable[Implementation]) -> bool:
        """Search the series of implementations again. Returns False if nothing has changed for the caller.

        With a moving clock the searches run in the background, and only if their results can be recorded. With a fixed one
        they are waited for, because the same question must have the same answer.
        """
        wanted = {series_named(each.symbol, each.timeframe) for each in outdated}
        for series in wanted:
            if not self._bars.clock.moving:
                with suppress(DataError, UnknownSymbol):
                    await self._searching.ensure(principal, series)
            elif self._searching.writes:
                for owner in {EVERYONE, principal}:
                    self._searching.begin(owner, series)
        return bool(wanted) and not self._bars.clock.moving

    async def ranked(self, principal: str, wanted: list[Implementation], seconds: float | None = None) -> list[Ranked]:
        """Returns implementations with their figures; those without any, or none within some seconds, are left out."""
        specs = await self.specs(principal)
        figures, _ = await self._figures.ready(wanted, specs, seconds)
        return [Ranked(each, specs[each.spec_id], figures[each.id]) for each in wanted if each.id in figures]

    async def strategy(self, principal: str, strategy_id: str, symbol: str | None) -> Ranked:
        """Returns the strategy of an implementation's id, or a spec's best one on a symbol.

        Raises `UnknownStrategy`, and `NoSignal` if it is not on this symbol.
        """
        instrument = await self._bars.find(symbol) if symbol is not None else None
        found = await self.implementation(principal, strategy_id, instrument)
        if found is not None:
            if instrument is not None and found.symbol != instrument.symbol:
                raise NoSignal(f"{found.id} trades {found.symbol}, not {instrument}", strategy_id=found.id)
            ranked = await self.ranked(principal, [found])
            outdated = [each.implementation for each in ranked if each.outdated]
            if await self.judge_again(principal, outdated):
                again = await self._searching.find(principal, found.id)
                ranked = await self.ranked(principal, [again or found])
        else:
            known = await self.spec(principal, strategy_id)
            if instrument is None:
                raise UnknownStrategy(
                    f"{known.id} is a spec: name a symbol, or a strategy_id of get_top_strategies", strategy_id=known.id
                )
            ranked = [each for each in await self.on(principal, instrument) if each.known.id == known.id]
        if not ranked:
            pending = self.pending(principal, instrument) if instrument is not None else None
            why = pending or f"{strategy_id[:80]} has no bars to be computed from"
            raise NoSignal(why, strategy_id=strategy_id[:80])
        return max(ranked, key=lambda each: (each.implementation.status.active, each.score("sharpe") or -1e9))

    async def implementation(
        self, principal: str, strategy_id: str, instrument: Instrument | None
    ) -> Implementation | None:
        """Returns the implementation of an id; None if there is none.

        A desk that may not write keeps implementations in memory: it searches the symbol again if it does not know the id.
        """
        wanted = strategy_id.strip()
        found = await self._searching.find(principal, wanted)
        if found is None and wanted.startswith("impl_") and instrument is not None and not self._searching.writes:
            await self.on(principal, instrument, wait=True)
            found = await self._searching.find(principal, wanted)
        return found

    async def spec(self, principal: str, text: str) -> KnownSpec:
        """Returns the spec of an id or a name. Raises `UnknownStrategy`."""
        try:
            return await self._specs.find(principal, text)
        except UnknownSpec as unknown:
            if text.strip().startswith("impl_") and not self._searching.writes:
                raise UnknownStrategy(
                    f"no strategy {text[:80]!r} is recorded, and this desk keeps what it finds in memory: name its symbol "
                    "too, and it is searched",
                    strategy_id=text[:80],
                ) from None
            raise UnknownStrategy(unknown.message.replace("no spec", "no strategy", 1), strategy_id=text[:80]) from None

    async def since_signal(self, strategy: Ranked) -> tuple[float, float, int] | None:
        """Returns the close at which the signal of a strategy was decided, and the newest close with its time.

        None without a signal.
        """
        made, at = strategy.implementation, strategy.figures.triggered_at
        if at is None:
            return None
        series = series_named(made.symbol, made.timeframe)
        bars = await self._bars.span(series, at - series.timeframe.seconds, None)
        decided = int(bars.time.searchsorted(at)) - 1  # the last bar that opened before it closed
        return (float(bars.close[decided]), float(bars.close[-1]), closed_at(bars)) if decided >= 0 else None

    def why_no_signal(self, strategy: Ranked) -> str | None:
        """Returns why a strategy advises nothing now; None if it has a signal."""
        figures, made = strategy.figures, strategy.implementation
        if figures.action is None or figures.triggered_at is None:
            return f"{strategy.known.spec.name} has not decided anything on {made.symbol} {made.timeframe} bars yet"
        if not self.is_current(strategy):
            return f"{made.symbol} has no current {made.timeframe} bars: the last one closed at {iso(figures.until)}"
        return None

    def is_current(self, strategy: Ranked) -> bool:
        """Returns False if the signal of a strategy is old, because its series has no new bars."""
        made = strategy.implementation
        return is_current(series_named(made.symbol, made.timeframe), strategy.figures.until, self._bars.clock.epoch())

    async def facts(self, implementations: Iterable[Implementation]) -> BarFacts:
        """Returns what the bars of implementations are made of, and their sources."""
        found = []
        for (symbol, timeframe), first in {
            (each.symbol, each.timeframe): each.first for each in implementations
        }.items():
            with suppress(DataError, UnknownSymbol):  # then their figures are not there either
                stretch = await bars_since(self._bars, series_named(symbol, timeframe), first)
                found.append(await bar_facts(self._bars, stretch.bars))
        made_of = "+".join(dict.fromkeys(name for each in found if each.made_of for name in each.made_of.split("+")))
        failure = next((each.failure for each in found if each.failure), None)
        return BarFacts(made_of or None, frozenset().union(*(each.sources for each in found)), failure)

    async def consensus(self, principal: str, symbol: str) -> tuple[Consensus, list[Ranked]]:
        """Returns the consensus of the validated and deployed strategies of a symbol, and those that have a vote.

        Strategies of the same content and timeframe have one vote. Raises `NoActiveStrategies`.
        """
        instrument = await self._bars.find(symbol)
        found = await self.on(principal, instrument)
        passed = [each for each in found if each.implementation.status.active]
        judged = [each for each in passed if not each.outdated]
        active = [each for each in judged if self.is_current(each)]
        if passed and not judged:
            raise NoActiveStrategies(
                f"the bars of the {len(passed)} validated strategies of {instrument} have changed: they are being judged "
                "again; ask again",
                symbol=instrument.symbol,
            )
        if judged and not active:
            newest = max(each.figures.until for each in judged)
            raise NoActiveStrategies(
                f"the {len(judged)} validated strategies of {instrument} have no current bars: the last one closed at "
                f"{iso(newest)}",
                symbol=instrument.symbol,
            )
        if not active and not found and (pending := self.pending(principal, instrument)):
            raise NoActiveStrategies(pending, symbol=instrument.symbol)
        if not active:
            raise NoActiveStrategies(
                f"none of {counted(len(found), 'strategy', 'strategies')} of {instrument} has passed "
                f"validation{self._expected}; get_top_strategies ranks them, and get_implementations (server strategy-db) "
                "of a spec_id with status CANDIDATE has the reasons",
                symbol=instrument.symbol,
                candidates=len(found),
            )
        counting = {each.id for each in one_of_each(each.implementation for each in active)}
        voters = [each for each in active if each.implementation.id in counting]
        return consensus_of([vote_of(each.figures) for each in voters]), voters


def _deadline(seconds: float | None) -> float | None:
    """Returns the time of the event loop after some seconds."""
    return None if seconds is None else asyncio.get_running_loop().time() + seconds


def outdated_note(count: int) -> str:
    """Returns a note about strategies that are being judged again; empty if there are none."""
    if not count:
        return ""
    return f"the bars of {count} strategies have changed: they are being judged again, and have no vote until then"


MONTHS = {"1m": 1, "3m": 3, "6m": 6, "1y": 12}
PERIODS = ("1w", *MONTHS)
_WEEK = 7 * 86400


class PerformanceService:
    """Periods of strategies."""

    def __init__(self, bars: BarService, workers: Workers, setup: Setup) -> None:
        self._bars = bars
        self._workers = workers
        self._setup = setup

    async def of(self, strategy: Ranked, period: str) -> tuple[Period, SeriesBars]:
        """Returns what a strategy has earned in a period up to now. Raises `NoPerformance` if it did not trade."""
        made = strategy.implementation
        stretch = await bars_since(self._bars, series_named(made.symbol, made.timeframe), made.first)
        start = _start(self._bars.clock.epoch(), period)
        found = await self._workers.run(
            period_of, strategy.known.spec, made.parameters, stretch.bars, self._setup, start
        )
        if not found.closed:
            raise NoPerformance(
                f"{strategy.known.spec.name} has closed no trade of {made.symbol} in the last {period}; a longer period "
                "may have some",
                strategy_id=made.id,
                period=period,
            )
        return found, stretch


def _start(now: float, period: str) -> int:
    """Returns the start of a period that ends now: a week, or calendar months, before."""
    if period == "1w":
        return int(now) - _WEEK
    then = datetime.fromtimestamp(now, UTC)
    months = then.year * 12 + then.month - 1 - MONTHS[period]
    year, month = divmod(months, 12)
    day = then.day
    while True:  # 31 May minus three months is 28 February
        try:
            return int(then.replace(year=year, month=month + 1, day=day).timestamp())
        except ValueError:
            day -= 1
