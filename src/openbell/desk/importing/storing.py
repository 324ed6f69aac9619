"""Stores the series of files: minutes month by month, small series of other timeframes many at a time.

A minute without a trade has no bar, so the first and the last bar of a symbol with few trades are not where its file begins
and ends. Other symbols of the file show it. What the pauses of the symbol itself show is found when its bars are read
(`bar_assembly.QuietEdges`).

The store covers the union of what was imported, however it was split into files. Coverage is computed from the bars of the
store together with those of the files. So two files that follow each other cover what one file of all their bars covers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from openbell.desk.bars.history_coverage import covered_by_imports, silence
from openbell.desk.importing.series import FileSeries
from openbell.market import bars as barlib
from openbell.market.bars import MINUTE, Bars, closed_at, empty_of
from openbell.market.clock import SystemClock
from openbell.market.errors import SourceConflict
from openbell.market.instruments import AssetClass
from openbell.market.provenance import Origin, Source, adjustment_of
from openbell.market.series import Series
from openbell.market.session_table import Times, table_for
from openbell.market.timeframes import Timeframe
from openbell.stores.coverage import joined
from openbell.stores.period_sources import without
from openbell.stores.periods import FIRST, LAST, by_period, period_span
from openbell.stores.port import BarStore, Span

Advance = Callable[[int], None]
"""Shows that so many more bars are done."""
_EVER = 2**40
_DAY = 86400


def store(bar_store: BarStore, found: Sequence[FileSeries], replace: bool, advance: Advance) -> list[int | None]:
    """Write series; returns, for each, the time of the latest bar that was stored before, None if there was none.

    Raises `SourceConflict` before anything is written if bars of another source stand in the way.
    """
    newest = {each: bar_store.tail(each, 1, _EVER) for each in {series.bars.series for series in found}}
    if replace:
        _check_adjustments(bar_store, found)
    else:
        for series in found:
            _check_conflicts(bar_store, series)
    minutes = [series for series in found if series.bars.timeframe is Timeframe.M1]
    for series, span in zip(minutes, minute_spans(minutes), strict=True):
        _write_months(bar_store, series.bars, span, source_of(series), replace, advance)
    by_source: dict[Source, dict[Series, list[Bars]]] = {}
    for series in found:
        if series.bars.timeframe is not Timeframe.M1:
            by_source.setdefault(source_of(series), {}).setdefault(series.bars.series, []).append(series.bars)
    for source, files in by_source.items():
        if replace:
            _write_in_place(bar_store, files, source)
        else:
            # Several files may hold one series: together they are one part, of which the later file wins.
            parts = [barlib.merge(*some) for some in files.values()]
            bar_store.write(parts, source, covers=_covers(bar_store, parts, source))
        advance(sum(len(bars) for some in files.values() for bars in some))
    latest = {each: int(bars.time[-1]) if len(bars) else None for each, bars in newest.items()}
    return [latest[series.bars.series] for series in found]


def _covers(bar_store: BarStore, parts: Sequence[Bars], source: Source) -> dict[Series, list[Span]]:
    return {part.series: covered_with(bar_store, part, source) for part in parts}


def _write_in_place(bar_store: BarStore, files: Mapping[Series, Sequence[Bars]], source: Source) -> None:
    """Write bars in place of those of other sources.

    File by file: together they would also drop what other sources have between one file and the next.
    """
    for bars in chain(*files.values()):
        bar_store.write([bars], source, covers=_covers(bar_store, [bars], source), replace=True)
    # Only now the bars that were replaced stand no longer between the files.
    parts = [barlib.merge(*some) for some in files.values() if len(some) > 1]
    bar_store.write([empty_of(part.series) for part in parts], source, covers=_covers(bar_store, parts, source))


def source_of(series: FileSeries) -> Source:
    """Returns the source of the stored bars."""
    return Source(Origin.IMPORTED, "import", series.adjustment.value)


def _check_conflicts(bar_store: BarStore, series: FileSeries) -> None:
    bars = series.bars
    if others := bar_store.sources.conflicts(bars, source_of(series)):
        raise SourceConflict(
            f"the store has bars of another source: {', '.join(others[:10])}"
            f"{f' and {len(others) - 10} more' if len(others) > 10 else ''}"
            f"; {series.file} was not imported (--replace drops those of {bars.series} from the first to the last bar of the"
            f" file)"
        )


def _check_adjustments(bar_store: BarStore, found: Sequence[FileSeries]) -> None:
    """Raises `SourceConflict` if bars would be dropped that the files do not have: a series has one adjustment."""
    times: dict[Series, list[Times]] = {}
    for series in found:
        times.setdefault(series.bars.series, []).append(series.bars.time)
    for series in found:
        _check_adjustment(bar_store, series, np.concatenate(times[series.bars.series]))


def _check_adjustment(bar_store: BarStore, series: FileSeries, held: Times) -> None:
    bars, source = series.bars, source_of(series)
    periods = [period_span(period) for period, _ in by_period(bars, source)]
    whole = Span(periods[0][0], periods[-1][1])
    ours = adjustment_of(bars.instrument, source)
    stored = bar_store.sources.of(bars.series, whole)
    others = {each for each in stored if adjustment_of(bars.instrument, each) != ours}
    lost = np.setdiff1d(bar_store.read(bars.series, whole.start, whole.end).time, held) if others else bars.time[:0]
    if len(lost):
        raise SourceConflict(
            f"{series.file} holds {series.adjustment} prices, but the store has {len(lost):,} bars of {bars.series} that "
            f"are not in the file and come from {', '.join(sorted(map(str, others)))}: --replace would drop them; import "
            f"a file that holds them too"
        )


def _write_months(bar_store: BarStore, bars: Bars, span: Span, source: Source, replace: bool, advance: Advance) -> None:
    months = list(by_period(bars, source))
    later = (period_span(month)[0] for month, _ in months[1:])
    # A month also covers empty months after it, so that coverage has no gap but those of the file.
    bounds = pairwise([FIRST, *later, LAST])
    first, last = int(bars.time[0]), closed_at(bars)
    covered = joined([Span(span.start, first), *covered_with(bar_store, bars, source), Span(last, span.end)])
    for (_, part), (start, end) in zip(months, bounds, strict=True):
        cut = (Span(max(start, each.start), min(end, each.end)) for each in covered)
        covers = {part.series: [each for each in cut if each.start < each.end]}
        bar_store.write([part], source, covers=covers, replace=replace)
        advance(len(part))


def minute_spans(found: Sequence[FileSeries]) -> list[Span]:
    """Returns for each series of minutes the span that its file covers: see `minutes_span`."""
    keys = [(series.file, series.bars.instrument.asset_class) for series in found]
    whole: dict[tuple[str, AssetClass], Span] = {}
    for key, series in zip(keys, found, strict=True):
        start, end = int(series.bars.time[0]), closed_at(series.bars)
        known = whole.get(key, Span(start, end))
        whole[key] = Span(min(start, known.start), max(end, known.end))
    return [minutes_span(series.bars, whole[key]) for key, series in zip(keys, found, strict=True)]


def minutes_span(bars: Bars, whole: Span) -> Span:
    """Returns the span that a file covers for one symbol; `whole` is that of all its symbols of the same market.

    At least from its first to its last bar. On the days of these bars it begins and ends with all symbols.
    """
    first, last = whole.start, whole.end
    start, end = int(bars.time[0]), closed_at(bars)
    if bars.instrument.asset_class is not AssetClass.STOCK:
        midnight = (end - MINUTE) // _DAY * _DAY + _DAY
        return Span(min(start, max(first, start // _DAY * _DAY)), max(end, min(last, midnight)))
    table = table_for(start, end)
    days = table.extended(np.array([start, end - MINUTE])).tolist()
    if days[0] >= 0:
        start = min(start, max(first, int(table.premarket[days[0]])))
    if days[1] >= 0:
        end = max(end, min(last, int(table.end[days[1]])))
    return Span(start, end)


def covered_with(bar_store: BarStore, bars: Bars, source: Source) -> list[Span]:
    """Returns what is covered once sorted `bars` of a source are stored, as far as they reach or join what is stored.

    If the store has bars of other sources there, the times between the files are left to the feed.
    """
    now, series = SystemClock().epoch(), bars.series
    own = covered_by_imports(bars, now)
    around = Span(int(bars.time[0]) - silence(bars.timeframe), closed_at(bars) + silence(bars.timeframe))
    if bar_store.sources.of(series, around) != {source}:
        return own
    stored = bar_store.read(series, around.start, around.end)
    return joined([*own, *_without_lost(bar_store, series, covered_by_imports(barlib.merge(stored, bars), now))])


def uncovered_imports(bar_store: BarStore) -> Iterator[tuple[Series, list[Span]]]:
    """Yields the series of imported bars of which some are stored and not covered, with the spans that should be.

    A home may have them if coverage and bars were not stored together, for example if the coverage of the last of several
    files replaced that of the others. Minutes are covered file by file.
    """
    for series in bar_store.stored():
        if series.timeframe is Timeframe.M1 or not _sources(bar_store, series):
            continue
        bars = bar_store.read(series, 0, _EVER)
        if len(bars) and (lacking := _lacking(bar_store, bars)):
            yield series, lacking


def cover_imports(bar_store: BarStore, series: Series, spans: Sequence[Span]) -> None:
    """Record spans of imported bars as covered. Other sources' bars, and losses, are not concerned."""
    source = min(_sources(bar_store, series), key=str)
    bar_store.write([empty_of(series)], source, covers={series: spans})


def _lacking(bar_store: BarStore, bars: Bars) -> list[Span]:
    """The parts of what imported bars cover that are gaps, and hold bars."""
    series, imported = bars.series, _sources(bar_store, bars.series)
    parts = [bars]
    if bar_store.sources.of(series, Span(0, _EVER)) != imported:
        # Other bars in a gap are a feed's, which asks for them again, and so is the time between imported ones.
        gaps = bar_store.gaps(series, Span(int(bars.time[0]), closed_at(bars)))
        held = (bars.between(gap.start, gap.end) for gap in gaps)
        parts = [
            part for part in held if len(part) and any(not bar_store.sources.conflicts(part, each) for each in imported)
        ]
    spans = [span for part in parts for span in covered_by_imports(part, SystemClock().epoch())]
    gaps = [gap for span in _without_lost(bar_store, series, spans) for gap in bar_store.gaps(series, span)]
    # A night that was in the future at the import lacks no bar.
    return [gap for gap in gaps if len(bars.between(gap.start, gap.end))]


def _sources(bar_store: BarStore, series: Series) -> set[Source]:
    found = bar_store.sources.of(series, Span(0, _EVER))
    return {each for each in found if each.origin is Origin.IMPORTED}


def _without_lost(bar_store: BarStore, series: Series, spans: Sequence[Span]) -> list[Span]:
    """Spans without those whose bars were lost: they are gaps until they are stored again."""
    return [part for span in spans for part in without(span, bar_store.audit.lost_spans(series, span))]
