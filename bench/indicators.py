"""The whole registry of indicators over 3,000 bars: CPU time, the best of many.

Other work on the machine evicts these many small pieces of code from its caches, so the rows name the load. The most
expensive indicators follow, each measured alone.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from measure import row
from openbell.feeds.sim.bars import minute_bars
from openbell.indicators.registry import all_indicators
from openbell.indicators.spec import Indicator
from openbell.market.bars import Bars
from openbell.market.extras import KINDS, Extra
from openbell.market.instruments import parse

END = 1_763_000_000 // 60 * 60
DEPTH = 3000
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


def main() -> int:
    bars = minute_bars(parse("BTC/USD"), 7, END - DEPTH * 60, END)
    everything = list(all_indicators().values())
    load = f"load {os.getloadavg()[0]:.1f}"
    spent = over_arrays(everything, bars, 20) / 1000
    row(f"the whole registry ({len(everything)}) over 3,000 bars, {load}", f"{spent:.1f} ms", "≤ 25 ms", spent <= 25)
    alone = {each.name: over_arrays([each], bars, 10) / 1000 for each in everything}
    row("all of them, each measured alone", f"{sum(alone.values()):.1f} ms", "(none)", True)
    for name in sorted(alone, key=lambda name: -alone[name])[:SHOWN]:
        row(f"  {name}", f"{alone[name]:.2f} ms", "(none)", True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
