"""Live quotes of many instruments at once: the newest close of each, and its volume of 24 hours."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from openbell.desk.bars.facts import bar_facts, stored_instead
from openbell.desk.bars.latest_price import day_volume, price_of
from openbell.desk.bars.service import BarService
from openbell.desk.quotes.arche.historical import decimal_text
from openbell.desk.quotes.arche.requests import AnswerFacts, Missing
from openbell.market.bars import MINUTE, Bars
from openbell.market.clock import iso
from openbell.market.errors import UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument
from openbell.market.provenance import BarFacts, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe

_KEPT = 512
"""Instruments whose volume is kept until their bars change."""
_SHOWN_NOTES = 3


@dataclass(frozen=True, slots=True)
class _Day:
    """What was computed of some minute bars in one minute."""

    bars: Bars
    minute: int
    volume: float
    sources: frozenset[Source]
    note: str | None


@dataclass(frozen=True, slots=True)
class LiveAnswer:
    """The quotes of some instruments, in their order, and those that have none."""

    quotes: list[dict[str, Any]]
    missing: list[Missing]
    facts: AnswerFacts


class LiveQuotes:
    """Quotes from the newest minutes, all of which take one query of the store if they are in memory."""

    def __init__(self, bars: BarService, stale_after: float) -> None:
        self._bars = bars
        self._stale_after = stale_after
        self._days: OrderedDict[Instrument, _Day] = OrderedDict()

    async def answer(self, instruments: Sequence[Instrument]) -> LiveAnswer:
        """Returns the quotes of instruments that have a current price."""
        found = await self._bars.latest_of(instruments, Timeframe.M1)
        now = self._bars.clock.epoch()
        missing: list[Missing] = []
        current: list[tuple[Bars, int]] = []
        for instrument in instruments:
            minutes = found.get(instrument)
            if minutes is None or not len(minutes):
                missing.append(await self._without_bars(instrument))
                continue
            latest = price_of(minutes, now)
            if latest.missed > self._stale_after:
                missing.append(Missing(instrument.symbol, f"The {latest.age}", known=True))
            else:
                current.append((minutes, latest.end))
        days = await asyncio.gather(*(self._day(minutes, now) for minutes, _ in current))
        quotes = [_quote(day, end) for day, (_, end) in zip(days, current, strict=True)]
        return LiveAnswer(quotes, missing, _facts(days, [end for _, end in current]))

    async def _without_bars(self, instrument: Instrument) -> Missing:
        """Returns why an instrument has no bars: the feed has failed, does not know it, or has none yet."""
        failure = self._bars.failures.get(Series(instrument))
        if isinstance(failure, UnknownSymbol) or not await self._bars.known(instrument):
            return Missing(instrument.symbol, f"Unknown symbol {instrument}", known=False)
        if failure is None:
            hint = await stored_instead(self._bars, instrument)
            return Missing(instrument.symbol, f"No price of {instrument} yet: it has no minute bars{hint}", known=True)
        return Missing(instrument.symbol, failure.message, known=True)

    async def _day(self, minutes: Bars, now: float) -> _Day:
        """Returns what belongs to the price. The same bars in the same minute have the same volume."""
        minute = int(now // MINUTE)
        held = self._days.get(minutes.instrument)
        if held is not None and held.bars is minutes and held.minute == minute:
            return held
        volume = await day_volume(self._bars, minutes, now)
        facts = await bar_facts(self._bars, minutes.tail(1))
        note = "; ".join(filter(None, (facts.failure, volume.note))) or None
        made = _Day(minutes, minute, volume.volume, facts.sources, note)
        self._days[minutes.instrument] = made
        self._days.move_to_end(minutes.instrument)
        while len(self._days) > _KEPT:
            self._days.popitem(last=False)
        return made


def _quote(day: _Day, end: int) -> dict[str, Any]:
    instrument = day.bars.instrument
    return {
        "ticker": instrument.symbol,
        "price": decimal_text(float(day.bars.close[-1])),
        "currency": currency_of(instrument),
        "as_of": iso(end),
        "volume": round(day.volume) if instrument.has_volume else None,
    }


def currency_of(instrument: Instrument) -> str:
    """Returns the currency of an instrument's price."""
    return "USD" if instrument.asset_class is AssetClass.STOCK else instrument.symbol.partition("/")[2]


def _facts(days: Sequence[_Day], ends: Sequence[int]) -> AnswerFacts:
    if not days:
        return AnswerFacts()
    notes = list(dict.fromkeys(day.note for day in days if day.note))
    sources: frozenset[Source] = frozenset().union(*(day.sources for day in days))
    return AnswerFacts(
        days[0].bars.instrument if len(days) == 1 else None,
        min(ends),
        BarFacts("1m", sources, "; ".join(notes[:_SHOWN_NOTES]) or None),
    )
