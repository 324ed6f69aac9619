"""Pages of historical bars of many instruments.

Bars that the store lacks are fetched first, so that the total is exact. Daily bars of a range are few and are read at once.
Of minutes only the days of the page are read. `DayCounts` tells which those are: days that are over are counted once, and
again only after the store has changed them. The counts of a year take 730 bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.desk.bars.facts import bar_facts
from openbell.desk.bars.service import BarService
from openbell.desk.quotes.arche.requests import AnswerFacts, HistoricalRequest, Missing
from openbell.market.bars import Bars, closed_at
from openbell.market.digit_columns import volume_column
from openbell.market.errors import DataError, StoreError, UnknownSymbol
from openbell.market.instruments import Instrument
from openbell.market.provenance import BarFacts, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.market.trading_days import begin_of_date
from openbell.stores.port import BarStore, Span, Version


def items_of(parts: Sequence[Bars], skip: int, size: int, interval: str) -> tuple[list[dict[str, Any]], list[Bars]]:
    """Returns `size` bars of all parts after the first `skip`, as items, and the bars of each part among them."""
    if not parts:
        return [], []
    time, *values = (np.concatenate(group) for group in zip(*(part.columns() for part in parts), strict=True))
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    chosen = np.lexsort((owner, time))[skip : skip + size]
    owners = owner[chosen]
    times = np.datetime_as_string(time[chosen].astype("datetime64[s]")).tolist()
    *prices, volume = (column[chosen] for column in values)
    # All parts have the same timeframe: the volumes of minutes are the feed's own, others may be sums.
    volume = volume if parts[0].timeframe is Timeframe.M1 else volume_column(volume)
    texts = [decimal_texts(column.tolist()) for column in (*prices, volume)]
    tickers = [(part.instrument.symbol, part.instrument.has_volume) for part in parts]
    items = [
        {
            "ticker": tickers[index][0],
            "timestamp": f"{moment}+00:00",
            "open": o,
            "high": h,
            "low": low,
            "close": c,
            "volume": v if tickers[index][1] else None,
            "interval": interval,
        }
        for index, moment, o, h, low, c, v in zip(owners.tolist(), times, *texts, strict=True)
    ]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    used = [part.take(np.sort(chosen[owners == index]) - starts[index]) for index, part in enumerate(parts)]
    return items, [bars for bars in used if len(bars)]


def decimal_text(value: float) -> str:
    """Returns a finite number as a decimal text. Up to 15 digits it has exactly those that the feed sent."""
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text


def decimal_texts(values: Iterable[float]) -> list[str]:
    """Returns many numbers as decimal texts."""
    return [decimal_text(value) for value in values]


DAY = 86400
_AT_ONCE = 8
"""Instruments whose history is fetched at a time: each is in memory until it is stored."""
_EARLIEST = 365 * DAY
"""1971: no bar is older."""
_SHOWN_NOTES = 3
Counts = npt.NDArray[np.int16]
_UNKNOWN = -1
_PIECE = 31
"""Days that are read at once."""
_KEPT = 4096
"""Series whose counts are kept."""


@dataclass(frozen=True, slots=True)
class HistoricalAnswer:
    """One page, how many bars all pages have, and the instruments without an answer."""

    items: list[dict[str, Any]]
    total: int
    missing: list[Missing]
    facts: AnswerFacts
    final: bool
    """True if the whole range was over: later bars cannot change the page."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of one instrument."""

    instrument: Instrument
    days: Bars | None = None
    """Its daily bars."""
    counts: Counts | None = None
    """Its minutes of each day."""
    earliest: int = 0
    """Stored minutes before this time are not shown."""
    note: str | None = None
    missing: Missing | None = None

    @property
    def has_bars(self) -> bool:
        """Returns True if the range has bars of it."""
        return bool(self.days is not None and len(self.days)) or bool(self.counts is not None and self.counts.any())


class HistoricalBars:
    """Pages of bars from the bar service."""

    def __init__(self, bars: BarService) -> None:
        self._bars = bars
        self._counts = DayCounts(bars.store)

    async def answer(self, request: HistoricalRequest) -> HistoricalAnswer:
        """Returns a page of the bars that had closed by the clock."""
        closed = self._bars.closed_until()
        span = Span(max(request.span.start, _EARLIEST), min(request.span.end, closed))
        turn = asyncio.Semaphore(_AT_ONCE)

        async def find(instrument: Instrument) -> _Found:
            async with turn:
                return await self._find(instrument, request.timeframe, span)

        found = await asyncio.gather(*map(find, request.tickers.instruments))
        missing = [each.missing for each in found if each.missing]
        good = [each for each in found if not each.missing]
        skip = (request.page - 1) * request.page_size
        if request.timeframe is Timeframe.M1:
            parts, skip, total = await self._bars.threads.run(self._minutes, good, span, skip, request.page_size)
        else:
            parts = [each.days for each in good if each.days is not None]
            total = sum(map(len, parts))
        items, used = items_of(parts, min(skip, total), request.page_size, request.interval)
        facts = await self._facts(used, good)
        return HistoricalAnswer(items, total, missing, facts, final=request.span.end <= closed)

    async def _find(self, instrument: Instrument, timeframe: Timeframe, span: Span) -> _Found:
        """Fetch the bars of an instrument that the store lacks, and read its days, or count its minutes."""
        try:
            found = _Found(instrument)
            if span.start < span.end:
                read = self._count if timeframe is Timeframe.M1 else self._read
                found = await read(Series(instrument, timeframe), span)
            is_known = found.has_bars or await self._bars.known(instrument)
        except UnknownSymbol as error:
            return _Found(instrument, missing=Missing(instrument.symbol, error.message, known=False))
        except (DataError, StoreError) as error:
            return _Found(instrument, missing=Missing(instrument.symbol, error.message, known=True))
        if not is_known:
            return _Found(instrument, missing=Missing(instrument.symbol, f"Unknown symbol {instrument}", known=False))
        return found

    async def _read(self, series: Series, span: Span) -> _Found:
        start, end = (begin_of_date(series.instrument, series.timeframe, at) for at in (span.start, span.end))
        days = await self._bars.span(series, start, end)
        return _Found(series.instrument, days.between(await self._bars.earliest(series), end))

    async def _count(self, series: Series, span: Span) -> _Found:
        failure = await self._bars.fill(series.instrument, span)
        first, last = span.start // DAY, -(-span.end // DAY)
        counts = await self._bars.threads.run(self._counts.of, series, first, last, span.end)
        # A desk with an earlier clock may have stored older minutes, which this one does not show.
        earliest = await self._bars.earliest(series)
        counts = np.where(np.arange(first, last) < earliest // DAY, 0, counts).astype(counts.dtype)
        if failure and not counts.any():
            raise failure
        note = f"{failure.message}; the bars are those that were stored" if failure else None
        return _Found(series.instrument, counts=counts, note=note)

    def _minutes(self, found: Sequence[_Found], span: Span, skip: int, size: int) -> tuple[list[Bars], int, int]:
        """Returns the minutes of the days of a page, how many of them come before the page, and the total."""
        counted = [(each, each.counts) for each in found if each.counts is not None]
        if not counted:
            return [], 0, 0
        table = np.array([counts for _, counts in counted], dtype=np.int64)
        until = np.cumsum(table.sum(axis=0))  # bars up to the end of each day
        total = int(until[-1])
        if skip >= total:
            return [], 0, total
        low = int(np.searchsorted(until, skip, side="right"))
        high = int(np.searchsorted(until, min(skip + size, total), side="left")) + 1
        first = span.start // DAY
        start, end = (first + low) * DAY, min((first + high) * DAY, span.end)
        wanted = table[:, low:high].sum(axis=1).tolist()
        parts = [
            self._bars.store.read(Series(each.instrument), max(start, each.earliest), end)
            for (each, _), count in zip(counted, wanted, strict=True)
            if count
        ]
        return parts, skip - (int(until[low - 1]) if low else 0), total

    async def _facts(self, used: Sequence[Bars], found: Sequence[_Found]) -> AnswerFacts:
        """Returns what is known about the bars of a page."""
        facts = await asyncio.gather(*(bar_facts(self._bars, bars) for bars in used))
        notes = [each.note for each in found] + [each.failure for each in facts]
        shown = list(dict.fromkeys(note for note in notes if note))[:_SHOWN_NOTES]
        made_of = "+".join(dict.fromkeys(name for each in facts if each.made_of for name in each.made_of.split("+")))
        sources: frozenset[Source] = frozenset().union(*(each.sources for each in facts))
        return AnswerFacts(
            found[0].instrument if len(found) == 1 else None,
            max((closed_at(bars) for bars in used), default=None),
            BarFacts(made_of or None, sources, "; ".join(shown) or None),
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts of the days from `first` on, as the store had them at `version`."""

    version: Version
    first: int
    counts: Counts
    begun: tuple[int, int] | None = None
    """A time, and the minutes of its day before it: those of a day that is not over."""

    def between(self, first: int, last: int) -> Counts:
        """Returns the counts of the days [first, last)."""
        found = np.full(last - first, _UNKNOWN, dtype=np.int16)
        low, high = max(first, self.first), min(last, self.first + len(self.counts))
        if low < high:
            found[low - first : high - first] = self.counts[low - self.first : high - self.first]
        return found


class DayCounts:
    """Counts the minutes of days. Every call may block, and any number of threads may call it."""

    def __init__(self, store: BarStore) -> None:
        self._store = store
        self._counted: dict[Series, _Counted] = {}

    def of(self, series: Series, first: int, last: int, end: int) -> Counts:
        """Returns for each day in [first, last) how many minutes before `end` are stored."""
        over = max(first, min(last, end // DAY))
        held = self._known(series, first, over)
        begun = held.begun
        counts = np.zeros(last - first, dtype=np.int16)
        counts[: over - first] = held.between(first, over)
        if over < last and over * DAY < end:
            if begun is None or begun[0] != end:
                begun = (end, len(self._store.read(series, over * DAY, end)))
            counts[over - first] = begun[1]
        self._keep(series, replace(held, begun=begun))
        return counts

    def _known(self, series: Series, first: int, last: int) -> _Counted:
        """Returns counts that have all days in [first, last), which are over."""
        version = self._store.versions.of(series)  # taken before the reads: what is written meanwhile is read again
        held = self._counted.get(series) or _Counted(version, first, np.zeros(0, dtype=np.int16))
        low, high = min(held.first, first), max(held.first + len(held.counts), last)
        counts, begun = held.between(low, high), held.begun
        changed = self._store.versions.changed_since(series, held.version)
        if changed is not None:
            counts[max(0, changed // DAY - low) :] = _UNKNOWN
            begun = None
        for start, stop in _unknown_pieces(counts[first - low : last - low], first):
            days = self._store.read(series, start * DAY, stop * DAY).time // DAY - start
            counts[start - low : stop - low] = np.bincount(days, minlength=stop - start)
        return _Counted(version, low, counts, begun)

    def _keep(self, series: Series, counted: _Counted) -> None:
        self._counted.pop(series, None)
        self._counted[series] = counted
        while len(self._counted) > _KEPT:
            self._counted.pop(next(iter(self._counted)), None)


def _unknown_pieces(counts: Counts, first: int) -> Iterator[tuple[int, int]]:
    """Yields the runs of days without a count, in pieces."""
    unknown = np.flatnonzero(counts == _UNKNOWN)
    if not len(unknown):
        return
    for run in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        start, stop = first + int(run[0]), first + int(run[-1]) + 1
        for at in range(start, stop, _PIECE):
            yield at, min(at + _PIECE, stop)
