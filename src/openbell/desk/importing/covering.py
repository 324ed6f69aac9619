"""What the store covers once bars of files are stored: the union of what was imported, however it was split into files.

Coverage is computed from the bars of the store together with those of the files. So two files that follow each other cover
what one file of all their bars covers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from openbell.desk.bars.history_coverage import covered_by_imports, silence
from openbell.market import bars as barlib
from openbell.market.bars import Bars, closed_at, empty_of
from openbell.market.clock import SystemClock
from openbell.market.provenance import Origin, Source
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.coverage import joined
from openbell.stores.period_sources import without
from openbell.stores.port import BarStore, Span

_EVER = 2**40


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
