"""Stores the series of files: minutes month by month, small series of other timeframes many at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from openbell.desk.answers import covered_by_file
from openbell.desk.importing.file_spans import minute_spans
from openbell.desk.importing.series import FileSeries
from openbell.market.bars import Bars, closed_at, empty_of
from openbell.market.clock import SystemClock
from openbell.market.errors import SourceConflict
from openbell.market.plan import buckets
from openbell.market.provenance import Origin, Source, adjustment_of
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.periods import by_period, period_span
from openbell.stores.port import BarStore, Span

Advance = Callable[[int], None]
"""Shows that so many more bars are done."""
_EVER = 2**40


def store(bar_store: BarStore, found: Sequence[FileSeries], replace: bool, advance: Advance) -> list[int | None]:
    """Write series; returns, for each, the time of the latest bar that was stored before, None if there was none.

    Raises `SourceConflict` before anything is written if bars of another source stand in the way.
    """
    newest = [bar_store.tail(series.bars.series, 1, _EVER) for series in found]
    for series in found:
        (_check_adjustment if replace else _check_conflicts)(bar_store, series)
    by_source: dict[Source, list[Bars]] = {}
    minutes = [series for series in found if series.bars.timeframe is Timeframe.M1]
    for series, span in zip(minutes, minute_spans(minutes), strict=True):
        _write_months(bar_store, series.bars, span, source_of(series), replace, advance)
    for series in found:
        if series.bars.timeframe is not Timeframe.M1:
            by_source.setdefault(source_of(series), []).append(series.bars)
    for source, parts in by_source.items():
        spans = {part.series: covered_by_file(part, _span_of(part)) for part in parts}
        covers = {each: some[0] for each, some in spans.items()}
        bar_store.write(parts, source, covers=covers, replace=replace)
        for each, some in spans.items():
            _cover(bar_store, each, source, some[1:])
        advance(sum(map(len, parts)))
    return [int(bars.time[-1]) if len(bars) else None for bars in newest]


def _span_of(bars: Bars) -> Span:
    """Returns the span in which a series can have no other bar: a night belongs to the session before it."""
    end = closed_at(bars)
    opens, _ = buckets(bars.instrument, bars.timeframe, end, end + 30 * 86400)
    now = int(SystemClock().epoch() // 60 * 60)
    return Span(int(bars.time[0]), max(end, min(int(opens[0]), now)) if len(opens) else end)


def source_of(series: FileSeries) -> Source:
    """Returns the source of the stored bars."""
    return Source(Origin.IMPORTED, "import", series.adjustment.value)


def _check_conflicts(bar_store: BarStore, series: FileSeries) -> None:
    bars = series.bars
    if others := bar_store.conflicts(bars, source_of(series)):
        raise SourceConflict(
            f"the store has bars of another source: {', '.join(others[:10])}"
            f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}"
            f"; {series.file} was not imported (--replace drops those of {bars.series} from the first to the last bar of the"
            f" file){_hint(bar_store, series)}"
        )


def _check_adjustment(bar_store: BarStore, series: FileSeries) -> None:
    """Raises `SourceConflict` if bars would be dropped that the file does not have: a series has one adjustment."""
    bars, source = series.bars, source_of(series)
    periods = [period_span(period) for period, _ in by_period(bars, source)]
    whole = Span(periods[0][0], periods[-1][1])
    ours = adjustment_of(bars.instrument, source)
    stored = bar_store.sources(bars.series, whole)
    others = {each for each in stored if adjustment_of(bars.instrument, each) != ours}
    lost = (
        np.setdiff1d(bar_store.read(bars.series, whole.start, whole.end).time, bars.time) if others else bars.time[:0]
    )
    if len(lost):
        raise SourceConflict(
            f"{series.file} holds {series.adjustment} prices, but the store has {len(lost):,} bars of {bars.series} that "
            f"are not in the file and come from {', '.join(sorted(map(str, others)))}: --replace would drop them; import "
            f"a file that holds them too{_hint(bar_store, series)}"
        )


def _hint(bar_store: BarStore, series: FileSeries) -> str:
    """Returns what to do if the stored bars are of an import that was recorded as raw, maybe by an earlier version."""
    raw = Source(Origin.IMPORTED, "import")
    if source_of(series) == raw or raw not in bar_store.sources(series.bars.series, Span(0, _EVER)):
        return ""
    return (
        f"; earlier versions recorded every file as raw: if the stored bars are {series.adjustment} too, --adjustment raw "
        "adds these to them"
    )


def _write_months(bar_store: BarStore, bars: Bars, span: Span, source: Source, replace: bool, advance: Advance) -> None:
    months = list(by_period(bars, source))
    later = (period_span(month)[0] for month, _ in months[1:])
    # A month also covers empty months after it, so that coverage has no gap but those of the file.
    bounds = pairwise([span.start, *later, span.end])
    covered = covered_by_file(bars, span)
    for (_, part), (start, end) in zip(months, bounds, strict=True):
        cut = [Span(max(start, each.start), min(end, each.end)) for each in covered]
        spans = [each for each in cut if each.start < each.end]
        bar_store.write([part], source, covers=spans[0], replace=replace)
        _cover(bar_store, part.series, source, spans[1:])
        advance(len(part))


def _cover(bar_store: BarStore, series: Series, source: Source, spans: Sequence[Span]) -> None:
    for span in spans:
        bar_store.write([empty_of(series)], source, covers=span)
