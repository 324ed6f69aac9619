"""What is known about bars beside their prices: what they are made of, where they come from, and what is stored instead."""

from __future__ import annotations

from openbell.desk.bars.service import BarService
from openbell.market.bars import Bars, closed_at
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts, Source
from openbell.market.series_plan import PlanPart
from openbell.market.timeframes import ALL_NAMES, Timeframe, name_of
from openbell.stores.port import Span


async def bar_facts(service: BarService, bars: Bars, *, from_minutes: bool = False) -> BarFacts:
    """Returns the facts about closed bars. `from_minutes`: they were computed from minutes, whatever else is stored."""
    if not len(bars):
        return BarFacts()
    first, last = int(bars.time[0]), closed_at(bars)
    parts = [PlanPart(Timeframe.M1, first, last)] if from_minutes else await service.parts_of(bars)
    spans = [(part.base, Span(max(part.start, first), min(part.end, last))) for part in parts]

    def sources() -> frozenset[Source]:
        return frozenset().union(*(service.store.sources.of(bars.series.at(base), span) for base, span in spans))

    failure = service.failures.get(bars.series)
    return BarFacts(
        "+".join(dict.fromkeys(name_of(base, ALL_NAMES) for base, _ in spans)),
        await service.threads.run(sources),
        f"{failure.message}; the bars are those that were stored" if failure else None,
    )


async def stored_instead(service: BarService, instrument: Instrument) -> str:
    """Returns what is stored of an instrument that lacks the bars asked for, for an error message; maybe empty."""
    names = ", ".join(name_of(each, ALL_NAMES) for each in await service.stored_timeframes(instrument))
    return f"; what is stored are bars of {names}" if names else ""


async def latest_of_any(service: BarService, instrument: Instrument, minutes: Bars) -> Bars:
    """Returns the newest closed bars of the stored timeframe whose last bar closed last; of several, the shortest."""
    found = [await service.latest(instrument, each) for each in await service.stored_timeframes(instrument)]
    return max((minutes, *found), key=lambda bars: closed_at(bars) if len(bars) else 0)
