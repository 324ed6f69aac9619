"""Figures of implementations at the last closed bar. They are computed from bars, and kept until the bars differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from openbell.backtest.forward import Course, courses
from openbell.backtest.rules import Setup
from openbell.backtest.standing import Part, Placed, Standing, standings
from openbell.desk.bars import BarService
from openbell.desk.strategies.series_bars import SeriesBars, bars_since, digest_of, series_named
from openbell.desk.strategies.specs import KnownSpec
from openbell.desk.workers import Workers
from openbell.market.errors import DataError, Refused, UnknownSymbol
from openbell.market.series import Series
from openbell.stores.records import strategies as queries
from openbell.stores.records.records import Records
from openbell.strategies.consensus import Action
from openbell.strategies.implementations import Implementation, Status


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
class Figures:
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
        self._computed: dict[str, tuple[object, Figures]] = {}
        """By implementation, with the bars that they were computed from."""
        records.on_replaced.append(self._computed.clear)

    async def of(
        self, wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec], workers: Workers | None = None
    ) -> dict[str, Figures]:
        """Returns figures by implementation. An implementation is left out if its bars or its spec are not there.

        `workers` compute, instead of those that answer calls.
        """
        found: dict[str, Figures] = {}
        for (series, first), some in _by_series(wanted, specs).items():
            try:
                stretch = await bars_since(self._bars, series, first)
            except (DataError, UnknownSymbol):
                continue
            found |= await self._on(stretch, some, specs, workers or self._workers)
        return found

    async def courses(
        self, wanted: Sequence[Implementation], figures: Mapping[str, Figures], specs: Mapping[str, KnownSpec]
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
    ) -> dict[str, Figures]:
        state = [stretch.digest, self._setup.fee, self._setup.slippage]
        found = {each.id: self._computed[each.id][1] for each in wanted if self._is_current(each, state)}
        missing = [each for each in wanted if each.id not in found]
        if missing and self._writes:
            rows = await self._records.read(lambda view: queries.figures(view, [each.id for each in missing]))
            found |= {each: _figures(body["figures"]) for each, (_, body) in rows.items() if body["of"] == state}
            missing = [each for each in missing if each.id not in found]
        if missing:
            results = await workers.run(standings, _placed(missing, specs), stretch.bars, self._setup)
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

    async def _keep(self, new: Mapping[str, Figures], state: object) -> None:
        if not self._writes or not new:
            return
        rows = {
            each: (float(figures.until), {"of": state, "figures": asdict(figures)}) for each, figures in new.items()
        }
        with suppress(Refused):  # the scenario has gone on to a later time: this desk only reads it
            await self._records.write(lambda journal: queries.keep_figures(journal, rows))


def _by_series(
    wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec]
) -> dict[tuple[Series, int], list[Implementation]]:
    """Returns the implementations whose specs are unchanged, by series and first bar."""
    groups: dict[tuple[Series, int], list[Implementation]] = defaultdict(list)
    for each in wanted:
        if each.spec_id in specs and specs[each.spec_id].fingerprint == each.fingerprint:
            groups[series_named(each.symbol, each.timeframe), each.first].append(each)
    return groups


def _placed(wanted: Iterable[Implementation], specs: Mapping[str, KnownSpec]) -> list[Placed]:
    return [Placed(specs[each.spec_id].spec, each.parameters, each.trained_until, each.found_at) for each in wanted]


def is_outdated(made: Implementation, figures: Figures) -> bool:
    """Returns True if an implementation must be judged again: until then it has no vote."""
    return figures.changed and made.status is not Status.RETIRED


def _has_changed(made: Implementation, stretch: SeriesBars) -> bool:
    """Returns False also if an earlier version did not record the bars that an implementation was judged by."""
    until = made.figures.get("until")
    return until is not None and digest_of(stretch.bars.between(made.first, until)) != made.figures["bars"]


def _summary(standing: Standing, *, changed: bool) -> Figures:
    signal = standing.signal
    return Figures(
        standing.until,
        _part(standing.untrained),
        _part(standing.before),
        _part(standing.forward),
        standing.untrained.confidence,
        signal.action if signal else None,
        signal.at if signal else None,
        standing.signal_bar,
        changed,
    )


def _part(part: Part) -> PartFigures:
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


def _figures(body: Mapping[str, Any]) -> Figures:
    parts = {name: PartFigures(**body[name]) for name in ("untrained", "before", "forward")}
    action = None if body["action"] is None else Action(body["action"])
    return Figures(**{**body, **parts, "action": action})
