"""Following an indicator bar by bar against computing it again over 3,000 bars: CPU time of one new bar, and memory."""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

from measure import row
from openbell.feeds.sim.minutes import minute_bars
from openbell.indicators.evaluation import IndicatorRequest, evaluate
from openbell.indicators.follower import Follower
from openbell.indicators.registry import all_indicators
from openbell.market.bars import Bars
from openbell.market.instruments import parse

DEPTH, NEW = 3000, 1000
END = 1_763_060_400
FOLLOWERS = 200
"""Of each indicator."""
WARM = 300
"""Bars: a follower holds no more after many than after these."""


def one_bar(request: IndicatorRequest, bars: Bars) -> tuple[float, float, float]:
    """Microseconds for one new bar, followed and computed again, and for the warm-up of the follower."""
    began = time.process_time()
    follower = Follower(request, bars.take(slice(0, DEPTH)))
    warm_up = time.process_time() - began
    known = [bars.take(slice(number + 1, DEPTH + number + 1)) for number in range(NEW)]
    began = time.process_time()
    for latest in known:
        follower.update(latest)
    followed = (time.process_time() - began) / NEW
    computed = float("inf")
    for latest in known[:: NEW // 20]:
        began = time.process_time()
        evaluate(latest, DEPTH, [request], {}, None)
        computed = min(computed, time.process_time() - began)
    return followed * 1e6, computed * 1e6, warm_up * 1e6


def memory() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> int:
    bars = minute_bars(parse("BTC/USD"), 7, END - (DEPTH + NEW) * 60, END)
    requests = [
        IndicatorRequest(name, each, each.settings()) for name, each in all_indicators().items() if each.signals
    ]
    all_warm_ups = 0.0
    for request in requests:
        followed, computed, warm_up = one_bar(request, bars)
        all_warm_ups += warm_up
        figure = f"{computed / followed:.0f} × ({computed:.0f} / {followed:.1f} µs)"
        row(f"{request.key}: a bar followed, faster than computed", figure, "≥ 5 ×", computed >= 5 * followed)
    row(f"warm-up of {len(requests)} followers on 3,000 bars", f"{all_warm_ups / 1000:.0f} ms", "(none)", True)
    before = memory()
    followers = [Follower(request, bars.tail(WARM)) for request in requests for _ in range(FOLLOWERS)]
    spent = (memory() - before) / len(followers) / 1000
    row("memory of one followed series, on average", f"{spent:.1f} KB", "≤ 20 KB", spent <= 20)
    return 0


if __name__ == "__main__":
    sys.exit(main())
