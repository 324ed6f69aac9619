"""Follows the active implementations: on each closed bar their signals, the rules of promotion, and the consensus.

Only changes are recorded. A signal's entry names the bar that it was decided by, and a consensus the entries of the signals
that it counts, so that the ledger shows why an order was placed. Strategies whose bars have changed since they were judged
are not followed until they are judged again. The rules are applied to each close in turn, so that an
engine that was stopped for a while records the steps that it would have recorded otherwise.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from openbell.backtest.current_signals import Course
from openbell.desk.bars.service import BarService
from openbell.desk.events.supervision import FailingUnits
from openbell.desk.orders.engine import raise_if_general
from openbell.desk.research.strategies.consensus_records import record_consensus
from openbell.desk.research.strategies.figures import FigureService, StrategyFigures, vote_of
from openbell.desk.research.strategies.series_bars import SeenBars, corrected, is_current, seen_bars, series_named
from openbell.desk.research.strategies.specs import KnownSpec, SpecService
from openbell.market.errors import DataError, UnknownSymbol
from openbell.market.lookback import bucket_start
from openbell.market.series import Series
from openbell.stores.port import Lease
from openbell.stores.records import strategies as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.strategies import EVERYONE
from openbell.strategies.implementations import Implementation, after, one_of_each

log = logging.getLogger(__name__)

_SYMBOL, _STRATEGY = "strategies on", "strategy"
"""Kinds of units that may fail alone."""
_Computed = tuple[dict[str, StrategyFigures], dict[str, Course]]
"""Figures and forward performance, by implementation."""


@dataclass(frozen=True, slots=True)
class _Vote:
    """An active implementation, its figures, and the ledger entry of its signal; None if it has none."""

    implementation: Implementation
    figures: StrategyFigures
    entry: int | None


class StrategyFollower:
    """One step of the engine."""

    def __init__(
        self,
        records: Records,
        bars: BarService,
        specs: SpecService,
        figures: FigureService,
        costs: queries.Costs,
        failing: FailingUnits | None = None,
    ) -> None:
        """`costs` are those that strategies are judged by: others are not followed.

        `failing` is where strategies are noted that cannot be followed, and symbols of which none can.
        """
        self._failing = failing or FailingUnits()
        self._records = records
        self._bars = bars
        self._specs = specs
        self._figures = figures
        self._costs = costs
        self._seen: dict[Series, SeenBars] = {}
        self._known: dict[Series, object] = {}
        """The bar and the implementations of each series when it was followed last."""
        records.on_replaced.append(self._known.clear)

    async def step(self, lease: Lease | None, until: int) -> int:
        """Follow the series that have new bars; returns how many entries were recorded."""
        followed = await self._records.read(queries.followed, self._costs)
        symbols: dict[str, list[Implementation]] = defaultdict(list)
        for each in followed:
            symbols[each.symbol].append(each)
        self._failing.keep(_SYMBOL, symbols)
        self._failing.keep(_STRATEGY, {each.id for each in followed})
        changes = 0
        for symbol, some in symbols.items():
            try:
                changes += await self._follow_new_bars(symbol, some, lease, until)
            except (DataError, UnknownSymbol) as error:
                log.debug("%s: %s", symbol, error)
            except Exception as error:  # noqa: BLE001 - the strategies of the other symbols are followed
                await raise_if_general(self._records, error, lease)
                self._failing.failed(_SYMBOL, symbol, error)
            else:
                self._failing.works(_SYMBOL, symbol)
        return changes

    async def _follow_new_bars(
        self, symbol: str, some: Sequence[Implementation], lease: Lease | None, until: int
    ) -> int:
        """Follow the strategies of a symbol if it has new bars; returns how many entries were recorded."""
        starts = {each: bucket_start(each.instrument, each.timeframe, until) for each in _series_of(some)}
        known: dict[Series, object] = {each: (start, _ids(some)) for each, start in starts.items()}
        if known.items() <= self._known.items() and not await self._corrected(starts):
            return 0
        store = self._bars.store
        seen = await self._bars.threads.run(lambda: {each: seen_bars(store, each, starts[each]) for each in starts})
        changes = await self._follow(symbol, some, lease)
        self._known |= known
        self._seen |= seen
        return changes

    async def _corrected(self, wanted: Iterable[Series]) -> bool:
        """Returns True if bars that had closed were stored or corrected since their series was followed last."""
        seen = {each: self._seen[each] for each in wanted}
        return bool(await self._bars.threads.run(corrected, self._bars.store, seen))

    async def _follow(self, symbol: str, wanted: Sequence[Implementation], lease: Lease | None) -> int:
        specs: dict[str, KnownSpec] = {}
        for principal in sorted({each.principal for each in wanted}):
            specs |= {each.id: each for each in await self._specs.all(principal)}
        figures, courses = await self._computed_apart(wanted, specs, lease)
        return await self._records.write(_record, symbol, self._costs, figures, courses, lease=lease)

    async def _computed_apart(
        self, wanted: Sequence[Implementation], specs: Mapping[str, KnownSpec], lease: Lease | None
    ) -> _Computed:
        """Returns what is known of implementations, computed together, or one by one if that fails.

        One that cannot be computed is noted and left out. Raises its error if none can.
        """
        try:
            found = await self._computed(wanted, specs)
        except Exception as error:
            await raise_if_general(self._records, error, lease)
            if len(wanted) == 1 or isinstance(error, (DataError, UnknownSymbol)):  # the bars of all of them
                raise
        else:
            for each in wanted:
                self._failing.works(_STRATEGY, each.id)
            return found
        figures, courses, failures = dict[str, StrategyFigures](), dict[str, Course](), list[Exception]()
        for each in wanted:
            try:
                figure, course = await self._computed([each], specs)
            except Exception as error:  # noqa: BLE001 - the other strategies are followed
                await raise_if_general(self._records, error, lease)
                self._failing.failed(_STRATEGY, each.id, error)
                failures.append(error)
            else:
                self._failing.works(_STRATEGY, each.id)
                figures |= figure
                courses |= course
        if len(failures) == len(wanted):
            raise failures[0]
        return figures, courses

    async def _computed(self, wanted: Sequence[Implementation], specs: Mapping[str, KnownSpec]) -> _Computed:
        found = await self._figures.of(wanted, specs)
        figures = {each: figure for each, figure in found.items() if not figure.changed}
        wanted = [each for each in wanted if each.id in figures]
        return figures, await self._figures.courses(wanted, figures, specs)


def _series_of(wanted: Iterable[Implementation]) -> set[Series]:
    return {series_named(each.symbol, each.timeframe) for each in wanted}


def _ids(wanted: Iterable[Implementation]) -> frozenset[tuple[str, str]]:
    return frozenset((each.id, each.status.value) for each in wanted)


def _record(
    journal: Journal,
    symbol: str,
    costs: queries.Costs,
    figures: Mapping[str, StrategyFigures],
    courses: Mapping[str, Course],
) -> int:
    """Record new signals, then promotions, then the consensus of every principal that sees them.

    Implementations without figures have no vote.
    """
    before, until = journal.seq, max((each.until for each in figures.values()), default=journal.at)
    recorded = queries.signals_of(journal.view, figures)
    # Read again: another process of the scenario may have recorded a step since the figures were computed.
    followed = [each for each in queries.followed(journal.view, costs) if each.id in figures]
    votes = []
    for each in followed:
        now, row = figures[each.id], recorded.get(each.id)
        entry = None if row is None else int(row["seq"])
        known = None if row is None else (row["signal"], row["triggered_at"])
        if now.action is not None and known != (now.action.value, float(now.triggered_at or 0)):
            entry = journal.put("signal", _signal_row(each, now), new=row is None, happened=now.until)
        promoted = _promoted(journal, each, courses.get(each.id, []))
        if promoted.status.active and is_current(series_named(each.symbol, each.timeframe), now.until, journal.at):
            votes.append(_Vote(promoted, now, entry))
    # Also those whose own strategies have all been retired.
    owners = {EVERYONE, *(each.principal for each in followed), *queries.consensus_owners(journal.view, symbol, costs)}
    for principal in sorted(owners):
        seen = [each for each in votes if each.implementation.principal in {EVERYONE, principal}]
        counting = {each.id for each in one_of_each(each.implementation for each in seen)}
        counted = [(vote_of(each.figures), each.entry) for each in seen if each.implementation.id in counting]
        record_consensus(journal, symbol, principal, costs, counted, until)
    return journal.seq - before


def _signal_row(implementation: Implementation, figures: StrategyFigures) -> dict[str, object]:
    return {
        "implementation_id": implementation.id,
        "symbol": implementation.symbol,
        "signal": figures.action.value if figures.action else "",
        "confidence": figures.confidence,
        "triggered_at": float(figures.triggered_at or 0),
        "bar_hash": figures.bar_hash,
    }


def _promoted(journal: Journal, implementation: Implementation, course: Course) -> Implementation:
    """Apply the rules of promotion to each close since the last step, and record the steps."""
    found = implementation
    for at, forward in course:
        if at <= found.changed_at or (step := after(found.status, forward)) is None:
            continue
        found = replace(found, status=step.status, reason=step.reason, changed_at=float(at))
        journal.put("implementation", found, happened=at)
    return found
