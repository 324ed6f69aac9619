"""A sweep with vectorbt, as a process in an environment of its own: a path to bars, then a line for each sweep to time.

vectorbt's licence (Commons Clause) keeps it out of the project; here it is only measured. It gets the bars and the values of
the parameters from `backtest.py`, and prints the seconds and the number of trades of each sweep.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import vectorbt as vbt

BATCH = 50
"""Columns at a time: with 250, its arrays leave the processor's cache, and it takes 1.7 times as long."""


def sweep(opened: Any, close: Any, fasts: list[int], slows: list[int], levels: list[float]) -> int:
    """Run EMA crossings with an RSI below a level, filled at the next open; the number of all trades."""
    fast, slow = (
        vbt.MA.run(close, values, ewm=True).ma.to_numpy().reshape(len(close), -1) for values in (fasts, slows)
    )
    # Wilder's averages, which its own RSI does not have.
    rise, fall = (close.diff().clip(*ends).abs().ewm(alpha=1 / 14).mean() for ends in ((0, None), (None, 0)))
    rsi = (100 * rise / (rise + fall)).to_numpy()
    tries = [(a, b, c) for a in range(len(fasts)) for b in range(len(slows)) for c in levels]
    trades = 0
    for first in range(0, len(tries), BATCH):
        part = tries[first : first + BATCH]
        entry, leave = (np.zeros((len(close), len(part)), bool) for _ in range(2))
        for at, (a, b, level) in enumerate(part):
            above = fast[:, a] > slow[:, b]
            entry[2:, at] = (above[1:] & ~above[:-1] & (rsi[1:] < level))[:-1]
            leave[2:, at] = (~above[1:] & above[:-1])[:-1]
        runs = vbt.Portfolio.from_signals(
            close, entry, leave, price=opened, fees=0.001, init_cash=10_000.0, freq="1min"
        )
        for figure in (runs.total_return, runs.sharpe_ratio, runs.max_drawdown):
            figure()
        trades += int(runs.trades.count().sum())
    return trades


bars = np.load(sys.argv[1])
index = pd.date_range("2025-01-01", periods=len(bars["close"]), freq="1min")
opens, closes = (pd.Series(bars[name], index=index) for name in ("open", "close"))
sweep(opens, closes, [5], [20, 24], [70.0])  # compiles
print("ready", flush=True)
for line in sys.stdin:
    began = time.perf_counter()
    count = sweep(opens, closes, *json.loads(line))
    print(json.dumps([time.perf_counter() - began, count]), flush=True)
