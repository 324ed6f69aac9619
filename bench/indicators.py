"""The whole registry of indicators over 3,000 bars, and one new bar through the stream of each: CPU time, the best of many.

Other work on the machine evicts these many small pieces of code from its caches, so the rows name the load. The most
expensive indicators follow, each measured alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from measure import row
from openbell.feeds.sim.minutes import minute_bars
from openbell.indicators.registry import all_indicators
from openbell.indicators.regular_hours import session_days
from openbell.indicators.spec import Bar, Indicator, Stream
from openbell.market.bars import Bars
from openbell.market.extras import KINDS, Extra
from openbell.market.instruments import parse

END = 1_763_000_000 // 60 * 60
DEPTH = 3000
WARM = 2000
"""Bars that a stream has seen before it is measured."""
PART = 100
"""Bars that are measured at once."""
SHOWN = 10
"""Indicators that are listed, the most expensive first."""


def least(works: Iterable[Callable[[], object]]) -> float:
    """The least CPU time of several runs, in microseconds."""
    best = float("inf")
    for work in works:
        began = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - began)
    return best / 1000


def over_arrays(indicators: Sequence[Indicator], bars: Bars, repeat: int) -> float:
    """Microseconds for all of the bars."""
    extras = {kind: Extra(bars.time, bars.volume) for kind in KINDS}
    return least([lambda: [each.run(bars, extras) for each in indicators]] * repeat)


def per_update(indicators: Sequence[Indicator], bars: Bars) -> float:
    """Microseconds for one new bar through all streams."""
    streams = [each.start(bars.instrument, bars.timeframe, **each.settings()) for each in indicators]
    columns = (column.tolist() for column in bars.columns())
    rows = [Bar(*values) for values in zip(*columns, session_days(bars).tolist(), strict=True)]
    follow(streams, rows[:WARM])
    parts = [rows[begin : begin + PART] for begin in range(WARM, DEPTH, PART)]
    return least([lambda part=part: follow(streams, part) for part in parts]) / PART  # type: ignore[misc]


def follow(streams: Sequence[Stream], rows: Iterable[Bar]) -> None:
    for bar in rows:
        for stream in streams:
            stream.update(bar)


def main() -> int:
    bars = minute_bars(parse("BTC/USD"), 7, END - DEPTH * 60, END)
    everything = list(all_indicators().values())
    streamed = [each for each in everything if each.stream]
    load = f"load {os.getloadavg()[0]:.1f}"
    spent = over_arrays(everything, bars, 20) / 1000
    row(f"the whole registry ({len(everything)}) over 3,000 bars, {load}", f"{spent:.1f} ms", "≤ 25 ms", spent <= 25)
    spent = per_update(streamed, bars)
    row(f"a streaming update of {len(streamed)} indicators, {load}", f"{spent:.0f} µs", "≤ 150 µs", spent <= 150)
    alone = {each.name: over_arrays([each], bars, 10) / 1000 for each in everything}
    updates = {each.name: per_update([each], bars) for each in streamed}
    for figures, unit in ((alone, "ms"), (updates, "µs")):
        row(f"all of them, each measured alone: {unit}", f"{sum(figures.values()):.1f} {unit}", "(none)", True)
        for name in sorted(figures, key=lambda name: -figures[name])[:SHOWN]:
            row(f"  {name}", f"{figures[name]:.2f} {unit}", "(none)", True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
