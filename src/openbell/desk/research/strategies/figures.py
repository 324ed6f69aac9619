"""Figures of implementations at the last closed bar. They are computed from bars, and kept until the bars differ."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from openbell.backtest.current_signals import (
    Course,
    CurrentSignal,
    ImplementationOnSeries,
    RunPart,
    courses,
    current_signals,
)
from openbell.backtest.rules import Setup
from openbell.desk.bars.service import BarService
from openbell.desk.research.strategies.series_bars import SeriesBars, bars_since, digest_of, series_named
from openbell.desk.research.strategies.specs import KnownSpec
from openbell.desk.research.workers import Workers
from openbell.market.errors import DataError, Refused, UnknownSymbol
from openbell.market.series import Series
from openbell.stores.records import strategies as queries
from openbell.stores.records.records import Records
from openbell.stores.threads import CALLER
from openbell.strategies.consensus import Action, Vote
from openbell.strategies.implementations import Implementation, ImplementationStatus

_Key = tuple[str, frozenset[str]]
"""A principal, and the implementations whose figures are computed for it."""


@dataclass(frozen=True, slots=True)
class PartFigures:
    """The figures of a part of a run; None where they are undefined."""

    trades: int
    closed: int
    right: int
    accuracy: float | None
    sharpe: float | None
    total_return: float | None
    drawdown: float | None


@dataclass(frozen=True, slots=True)
class StrategyFigures:
    """How an implementation stands at the last closed bar."""

    until: int
    """When that bar closed."""
    untrained: PartFigures
    """Since its parameters were chosen."""
    before: PartFigures
    """Of that, until it was found."""
    forward: PartFigures
    """Since it was found."""
    confidence: float
    """(right + 1) / (closed + 2) of the trades since its parameters were chosen."""
    action: Action | None
    """None if it has never traded."""
    triggered_at: int | None
    bar_hash: str
    changed: bool = False
    """Whether the bars that the implementation was judged by have changed since."""


class FigureService:
    """Computes the figures of implementations."""

    def __init__(self, records: Records, bars: BarService, workers: Workers, setup: Setup, *, writes: bool) -> None:
        self._records = records
        self._bars = bars
        self._workers = workers
        self._setup = setup
        self._writes = writes
        self._computed: dict[str, tuple[object, StrategyFigures]] = {}
        """By implementation, with the bars that they were computed from."""
        self._behind: dict[_Key, tuple[asyncio.Task[None], dict[str, StrategyFigures], set[str]]] = {}
        """What is computed in the background, its figures so far, and its symbols."""
        records.on_replaced.append(self._computed.clear)

    async def of(
        self, wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec], workers: Workers | None = None
    ) -> dict[str, StrategyFigures]:
        """Returns figures by implementation. An implementation is left out if its bars or its spec are not there.

        `workers` compute, instead of those that answer calls.
        """
        found: dict[str, StrategyFigures] = {}
        await self._add(found, wanted, specs, workers or self._workers)
        return found

    async def ready(
        self, wanted: Sequence[Implementation], specs: Mapping[str, KnownSpec], seconds: float | None
    ) -> tuple[dict[str, StrategyFigures], bool]:
        """Returns the figures that are there within some seconds, and whether these are all; None: waits for all.

        The others are computed in the background, and the next call has them.
        """
        if seconds is None:
            return await self.of(wanted, specs), True
        # Of each principal: the task waits in the queue of the one that has begun it.
        key = CALLER.get(), frozenset(each.id for each in wanted)
        if key not in self._behind:
            found: dict[str, StrategyFigures] = {}
            task = asyncio.create_task(self._add(found, wanted, specs, self._workers), name="figures")
            self._behind[key] = task, found, {each.symbol for each in wanted}
            task.add_done_callback(lambda done: self._ended(key, done))
        task, found, _ = self._behind[key]
        await asyncio.wait([task], timeout=seconds)
        if task.done():
            task.result()
        return dict(found), task.done()

    def computes(self, symbol: str) -> bool:
        """Returns True while figures of a symbol are computed in the background."""
        return any(symbol in symbols for _, _, symbols in self._behind.values())

    def _ended(self, key: _Key, task: asyncio.Task[None]) -> None:
        self._behind.pop(key, None)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it; the next call raises it again

    async def close(self) -> None:
        """Stop what is computed in the background."""
        tasks = [task for task, _, _ in self._behind.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _add(
        self,
        found: dict[str, StrategyFigures],
        wanted: Iterable[Implementation],
        specs: Mapping[str, KnownSpec],
        workers: Workers,
    ) -> None:
        """Add the figures of implementations to `found`, one series after the other."""
        for (series, first), some in _by_series(wanted, specs).items():
            try:
                stretch = await bars_since(self._bars, series, first)
            except (DataError, UnknownSymbol):
                continue
            found |= await self._on(stretch, some, specs, workers)

    async def courses(
        self, wanted: Sequence[Implementation], figures: Mapping[str, StrategyFigures], specs: Mapping[str, KnownSpec]
    ) -> dict[str, Course]:
        """Returns the forward performance of implementations at each close, by implementation."""
        found: dict[str, Course] = {}
        for (series, first), some in _by_series(wanted, specs).items():
            stretch = await bars_since(self._bars, series, first)
            known = [each for each in some if each.id in figures]
            placed, before = _placed(known, specs), [figures[each.id].before.drawdown for each in known]
            results = await self._workers.run(courses, placed, before, stretch.bars, self._setup)
            found |= {each.id: course for each, course in zip(known, results, strict=True)}
        return found

    async def _on(
        self, stretch: SeriesBars, wanted: list[Implementation], specs: Mapping[str, KnownSpec], workers: Workers
    ) -> dict[str, StrategyFigures]:
        state = [stretch.digest, self._setup.fee, self._setup.slippage]
        found = {each.id: self._computed[each.id][1] for each in wanted if self._is_current(each, state)}
        missing = [each for each in wanted if each.id not in found]
        if missing and self._writes:
            rows = await self._records.read(queries.figures, [each.id for each in missing])
            found |= {each: _figures(body["figures"]) for each, (_, body) in rows.items() if body["of"] == state}
            missing = [each for each in missing if each.id not in found]
        if missing:
            results = await workers.run(current_signals, _placed(missing, specs), stretch.bars, self._setup)
            new = {
                each.id: _summary(result, changed=_has_changed(each, stretch))
                for each, result in zip(missing, results, strict=True)
                if result is not None
            }
            await self._keep(new, state)
            found |= new
        self._computed |= {each: (state, figures) for each, figures in found.items()}
        return found

    def _is_current(self, implementation: Implementation, state: object) -> bool:
        known = self._computed.get(implementation.id)
        return known is not None and known[0] == state

    async def _keep(self, new: Mapping[str, StrategyFigures], state: object) -> None:
        if not self._writes or not new:
            return
        rows = {
            each: (float(figures.until), {"of": state, "figures": asdict(figures)}) for each, figures in new.items()
        }
        with suppress(Refused):  # the scenario has gone on to a later time: this desk only reads it
            await self._records.write(queries.keep_figures, rows)


def _by_series(
    wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec]
) -> dict[tuple[Series, int], list[Implementation]]:
    """Returns the implementations whose specs are unchanged, by series and first bar."""
    groups: dict[tuple[Series, int], list[Implementation]] = defaultdict(list)
    for each in wanted:
        if each.spec_id in specs and specs[each.spec_id].fingerprint == each.fingerprint:
            groups[series_named(each.symbol, each.timeframe), each.first].append(each)
    return groups


def _placed(wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec]) -> list[ImplementationOnSeries]:
    return [
        ImplementationOnSeries(specs[each.spec_id].spec, each.parameters, each.trained_until, each.found_at)
        for each in wanted
    ]


def is_outdated(made: Implementation, figures: StrategyFigures) -> bool:
    """Returns True if an implementation must be judged again: until then it has no vote."""
    return figures.changed and made.status is not ImplementationStatus.RETIRED


def vote_of(figures: StrategyFigures) -> Vote:
    """Returns the vote of a strategy."""
    if figures.action is None:
        return Vote(Action.HOLD, None)
    return Vote(figures.action, figures.confidence)


def _has_changed(made: Implementation, stretch: SeriesBars) -> bool:
    """Returns True if the bars that an implementation was judged by have other values now."""
    judged = stretch.bars.between(made.first, made.figures["until"])
    return bool(digest_of(judged) != made.figures["bars"])


def _summary(current: CurrentSignal, *, changed: bool) -> StrategyFigures:
    signal = current.signal
    return StrategyFigures(
        current.until,
        _part(current.untrained),
        _part(current.before),
        _part(current.forward),
        current.untrained.confidence,
        signal.action if signal else None,
        signal.at if signal else None,
        current.signal_bar,
        changed,
    )


def _part(part: RunPart) -> PartFigures:
    metrics = part.metrics
    return PartFigures(
        metrics.trades,
        part.closed,
        part.right,
        part.accuracy,
        metrics.sharpe,
        metrics.total_return,
        metrics.max_drawdown,
    )


def _figures(body: Mapping[str, Any]) -> StrategyFigures:
    parts = {name: PartFigures(**body[name]) for name in ("untrained", "before", "forward")}
    action = None if body["action"] is None else Action(body["action"])
    return StrategyFigures(**{**body, **parts, "action": action})
