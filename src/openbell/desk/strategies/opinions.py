"""What strategies advise about a symbol now: rankings, single signals and the consensus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from openbell.desk.bars import BarService
from openbell.desk.strategies.figures import Figures, FigureService
from openbell.desk.strategies.searching import SearchService
from openbell.desk.strategies.series_bars import SEARCHED
from openbell.desk.strategies.specs import KnownSpec, SpecService
from openbell.market.errors import DataError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.series import Series
from openbell.market.timeframes import SHORT, name_of
from openbell.strategies.consensus import Action, Consensus, Vote, consensus_of
from openbell.strategies.errors import NoActiveStrategies, NoSignal, NoStrategies, UnknownSpec, UnknownStrategy
from openbell.strategies.implementations import Implementation, Status

METRICS = ("sharpe", "accuracy", "return")


@dataclass(frozen=True, slots=True)
class Ranked:
    """An implementation with its figures."""

    implementation: Implementation
    known: KnownSpec
    figures: Figures

    def score(self, metric: str) -> float | None:
        """Returns the figure of a metric since its parameters were chosen; None if it is undefined."""
        part = self.figures.untrained
        return {"sharpe": part.sharpe, "accuracy": part.accuracy, "return": part.total_return}[metric]


class OpinionService:
    """Answers questions about the strategies of a symbol."""

    def __init__(
        self,
        bars: BarService,
        specs: SpecService,
        searching: SearchService,
        figures: FigureService,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        """`settle` brings the records of a scenario up to date before they are read."""
        self._settle = settle
        self._bars = bars
        self._specs = specs
        self._searching = searching
        self._figures = figures

    async def specs(self, principal: str) -> dict[str, KnownSpec]:
        """Returns the specs of a principal by id."""
        return {each.id: each for each in await self._specs.all(principal)}

    async def ranking(self, principal: str, symbol: str, metric: str) -> list[Ranked]:
        """Returns the strategies of a symbol that are not retired, the best first. Raises `NoStrategies`.

        Those are left out whose figures are undefined: they have not closed a trade since their parameters were chosen.
        """
        instrument = await self._bars.find(symbol)
        found = await self.on(principal, instrument)
        ranked = [each for each in found if all(each.score(name) is not None for name in METRICS)]
        if not ranked:
            raise NoStrategies(
                f"no strategy of {instrument} has closed a trade yet on bars that did not choose its parameters; it may "
                "have too few bars (openbell backfill fetches more)",
                symbol=instrument.symbol,
            )
        return sorted(ranked, key=lambda each: (-(each.score(metric) or 0.0), each.implementation.id))

    async def on(self, principal: str, instrument: Instrument) -> list[Ranked]:
        """Returns the strategies of a symbol that are not retired, after a search for those that were not tried yet.

        With a moving clock a call waits for one search; `pending` names those that follow it. With a fixed clock it waits
        for all, because the same question must have the same answer.
        """
        await self._settle()
        waiting = [Series(instrument, timeframe) for timeframe in SEARCHED]
        while waiting:
            try:
                searched = await self._searching.ensure(principal, waiting.pop(0))
            except (DataError, UnknownSymbol):
                continue  # the series is not there; another timeframe may be
            if searched and self._bars.clock.moving:
                break
        found = await self._searching.implementations(principal, symbol=instrument.symbol)
        ranked = await self.ranked(principal, [each for each in found if each.status is not Status.RETIRED])
        if self._searching.writes:  # otherwise nothing may run on after the answer: the next call searches
            for series in waiting:
                self._searching.begin(principal, series)
        return ranked

    def pending(self, principal: str, instrument: Instrument) -> str | None:
        """Returns a note about the searches of a symbol that are not finished; None if there are none."""
        running = [
            name_of(timeframe, SHORT)
            for timeframe in SEARCHED
            if self._searching.is_running(principal, Series(instrument, timeframe))
        ]
        return f"strategies on {' and '.join(running)} bars are still being searched: ask again" if running else None

    async def ranked(self, principal: str, wanted: list[Implementation]) -> list[Ranked]:
        """Returns implementations with their figures; those without any are left out."""
        specs = await self.specs(principal)
        figures = await self._figures.of(wanted, specs)
        return [Ranked(each, specs[each.spec_id], figures[each.id]) for each in wanted if each.id in figures]

    async def strategy(self, principal: str, strategy_id: str, symbol: str | None) -> Ranked:
        """Returns the strategy of an implementation's id, or a spec's best one on a symbol.

        Raises `UnknownStrategy`, and `NoSignal` if it is not on this symbol.
        """
        found = await self._searching.find(principal, strategy_id.strip())
        instrument = await self._bars.find(symbol) if symbol is not None else None
        if found is not None:
            if instrument is not None and found.symbol != instrument.symbol:
                raise NoSignal(f"{found.id} trades {found.symbol}, not {instrument}", strategy_id=found.id)
            ranked = await self.ranked(principal, [found])
        else:
            known = await self.spec(principal, strategy_id)
            if instrument is None:
                raise UnknownStrategy(
                    f"{known.id} is a spec: name a symbol, or a strategy_id of get_top_strategies", strategy_id=known.id
                )
            ranked = [each for each in await self.on(principal, instrument) if each.known.id == known.id]
        if not ranked:
            raise NoSignal(f"{strategy_id[:80]} has no bars to be computed from", strategy_id=strategy_id[:80])
        return max(ranked, key=lambda each: (each.implementation.status.active, each.score("sharpe") or -1e9))

    async def spec(self, principal: str, text: str) -> KnownSpec:
        """Returns the spec of an id or a name. Raises `UnknownStrategy`."""
        try:
            return await self._specs.find(principal, text)
        except UnknownSpec as unknown:
            raise UnknownStrategy(unknown.message.replace("no spec", "no strategy", 1), strategy_id=text[:80]) from None

    async def consensus(self, principal: str, symbol: str) -> tuple[Consensus, list[Ranked]]:
        """Returns the consensus of the validated and deployed strategies of a symbol. Raises `NoActiveStrategies`."""
        instrument = await self._bars.find(symbol)
        found = await self.on(principal, instrument)
        active = [each for each in found if each.implementation.status.active]
        if not active:
            raise NoActiveStrategies(
                f"none of {len(found)} strategies of {instrument} has passed validation; get_implementations with status "
                "CANDIDATE gives the reasons",
                symbol=instrument.symbol,
                candidates=len(found),
            )
        return consensus_of([vote_of(each.figures) for each in active]), active


def vote_of(figures: Figures) -> Vote:
    """Returns the vote of a strategy."""
    if figures.action is None:
        return Vote(Action.HOLD, None)
    return Vote(figures.action, figures.confidence)
