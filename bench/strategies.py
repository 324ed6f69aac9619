"""The canonical strategies on the newest bars of the symbols of the watchlist: CPU time, as after each closed bar."""

from __future__ import annotations

import sys
import time

from measure import row
from openbell.feeds.registry import STOCKS_AND_CRYPTO
from openbell.feeds.sim.bars import minute_bars
from openbell.market.instruments import parse
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.library import canonical

END = 1_763_060_400
"""2025-11-13 19:00 UTC."""
DAYS = 14
BARS = 3000
REPEAT = 3


def main() -> int:
    strategies = [compiled(spec) for spec in canonical().values()]
    symbols = [parse(symbol) for symbol in STOCKS_AND_CRYPTO]
    series = [minute_bars(symbol, 7, END - DAYS * 86400, END).tail(BARS) for symbol in symbols]
    spent = []
    for _ in range(REPEAT):
        began = time.process_time()
        for bars in series:
            for strategy in strategies:
                evaluate(strategy, bars)
        spent.append(time.process_time() - began)
    what = f"{len(strategies)} strategies × {len(symbols)} symbols, one new bar, {BARS:,} bars each"
    row(what, f"{min(spent) * 1000:.0f} ms", "≤ 2000 ms", min(spent) <= 2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
