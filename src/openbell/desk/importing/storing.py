"""Stores the series of files: minutes month by month, small series of other timeframes many at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np

from openbell.desk.importing.covering import covered_with
from openbell.desk.importing.file_spans import minute_spans
from openbell.desk.importing.series import FileSeries
from openbell.market import bars as barlib
from openbell.market.bars import Bars, closed_at, empty_of
from openbell.market.errors import SourceConflict
from openbell.market.provenance import Origin, Source, adjustment_of
from openbell.market.series import Series
from openbell.market.session_table import Times
from openbell.market.timeframes import Timeframe
from openbell.stores.coverage import joined
from openbell.stores.periods import FIRST, LAST, by_period, period_span
from openbell.stores.port import BarStore, Span

Advance = Callable[[int], None]
"""Shows that so many more bars are done."""
_EVER = 2**40


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
