"""The canonical strategies on one new bar of many symbols: CPU time by their streams, and the memory of the streams."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from measure import row
from openbell.desk.watchlist import DEFAULT, parse_watchlist
from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument
from openbell.strategies.compiled import compiled
from openbell.strategies.library import canonical
from openbell.strategies.plan import Plan
from openbell.strategies.running import RunningGroup

END = 1_763_060_400
"""2025-11-13 19:00 UTC."""
DAYS = 30
WARM, NEW = 300, 5
"""Bars for the warm-up, and new bars that are measured."""
SERIES = 500


def memory() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def histories(symbols: tuple[Instrument, ...]) -> list[Bars]:
    """The minutes of the symbols; then the same symbols again, earlier by some bars, until there are enough series."""
    minutes = [minute_bars(symbol, 7, END - DAYS * 86400, END) for symbol in symbols]
    rounds = -(-SERIES // len(symbols))
    found = []
    for number in range(rounds):
        for bars in minutes:
            end = len(bars) - number * ((len(bars) - WARM - NEW) // rounds)
            found.append(bars.take(slice(end - WARM - NEW, end)))
    return found[:SERIES]


def one_bar(groups: list[RunningGroup], bars: list[Bars]) -> float:
    """Milliseconds for one new bar of every series."""
    began = time.process_time()
    for group, bar in zip(groups, bars, strict=True):
        for _ in group.update(bar):
            pass
    return (time.process_time() - began) * 1000


def main() -> int:
    plan = Plan([compiled(spec) for spec in canonical().values()])
    symbols = parse_watchlist(DEFAULT).instruments
    few, bars = len(symbols), histories(symbols)
    before = memory()
    groups = [RunningGroup(plan) for _ in bars]
    warm_up = one_bar(groups, [each.take(slice(0, WARM)) for each in bars]) / SERIES
    held = (memory() - before) / 1e6
    new = [[each.take(slice(at, at + 1)) for each in bars] for at in range(WARM, WARM + NEW)]
    spent = [(one_bar(groups[:few], bar[:few]), one_bar(groups[few:], bar[few:])) for bar in new]
    names = f"{len(plan.strategies)} strategies"
    best = min(first for first, _ in spent)
    row(f"{names} × {few} symbols, one new bar", f"{best:.0f} ms", "≤ 100 ms", best <= 100)
    best = min(map(sum, spent))
    what = f"{names} × {SERIES} symbols ({held:.0f} MB), one new bar"
    row(what, f"{best:.0f} ms", "≤ 2000 ms", best <= 2000)
    row(f"{names}: warm-up of one symbol, {WARM} bars", f"{warm_up:.0f} ms", "(none)", True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
