"""One backtest of EMA(9, 21) crossings with RSI < 70 on 100,000 bars, indicators included, beside raptorbt."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import raptorbt

from measure import ms, row, timed
from openbell.backtest import kernel_numpy
from openbell.backtest.engine import Run, simulate
from openbell.backtest.kernel import Kernel
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.feeds.sim.minutes import minute_bars
from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.strategies.compiled import Compiled, compiled
from openbell.strategies.evaluation import evaluate
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import ConditionType

COUNT, REPEAT = 100_000, 30
END = 1_763_060_400
SPEC = {
    "name": "EMA_CROSS_RSI",
    "indicators": [
        {"id": "fast", "type": "EMA", "params": {"length": 9}},
        {"id": "slow", "type": "EMA", "params": {"length": 21}},
        {"id": "rsi", "type": "RSI", "params": {"length": 14}},
    ],
    "entryConditions": [
        {"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}},
        {"type": "UNDER", "indicator": "rsi", "params": {"value": 70}},
    ],
    "exitConditions": [{"type": "CROSSED_DOWN", "indicator": "fast", "params": {"crosses": "slow"}}],
    "parameters": [],
}
STOPS = {ConditionType.STOP_LOSS: 2.0, ConditionType.TRAILING_STOP_LOSS: 2.5, ConditionType.STOP_GAIN: 3.0}


def ours(strategy: Compiled, bars: Bars, kernel: Kernel) -> Run:
    return simulate(bars, evaluate(strategy, bars), strategy.side, strategy.stops, Setup(), kernel)


def theirs(bars: Bars) -> int:
    """The same with raptorbt's own indicators; the number of trades."""
    fast, slow, rsi = raptorbt.ema(bars.close, 9), raptorbt.ema(bars.close, 21), raptorbt.rsi(bars.close, 14)
    above = fast > slow
    entry, leave = np.zeros(len(bars), dtype=bool), np.zeros(len(bars), dtype=bool)
    entry[1:], leave[1:] = above[1:] & ~above[:-1] & (rsi[1:] < 70), ~above[1:] & above[:-1]
    config = raptorbt.BacktestConfig(initial_capital=10_000.0, fees=0.001, slippage=0.0, fill_timing="next_bar_open")
    result = raptorbt.run_single_backtest(bars.time * 10**9, *bars.columns()[1:], entry, leave, 1, 1.0, "X", config)
    return int(result.metrics.total_trades)


def main() -> int:
    began = time.perf_counter()
    from openbell.backtest import kernel_numba

    row("import of numba and the compiled kernel", f"{(time.perf_counter() - began) * 1000:.0f} ms", "(none)", True)
    bars = minute_bars(parse("BTC/USD"), 7, END - COUNT * 60, END)
    strategy = compiled(read_spec(SPEC))
    conditions = evaluate(strategy, bars)
    backtest(strategy, bars, Setup())
    works: dict[str, Callable[[], object]] = {
        "numba": partial(ours, strategy, bars, kernel_numba.walk),
        "numpy": partial(ours, strategy, bars, kernel_numpy.walk),
        "whole": partial(backtest, strategy, bars, Setup()),
        "theirs": partial(theirs, bars),
        "numba alone": partial(simulate, bars, conditions, strategy.side, {}, Setup(), kernel_numba.walk),
        "numpy alone": partial(simulate, bars, conditions, strategy.side, {}, Setup(), kernel_numpy.walk),
        "numba stops": partial(simulate, bars, conditions, strategy.side, STOPS, Setup(), kernel_numba.walk),
        "numpy stops": partial(simulate, bars, conditions, strategy.side, STOPS, Setup(), kernel_numpy.walk),
    }
    spent = {name: [0.0] * 0 for name in works}
    for _ in range(REPEAT):  # in turns, so that other work on the machine slows all of them
        for name, work in works.items():
            spent[name] += timed(work, 1)
    found = {name: ms(values) for name, values in spent.items()}
    trades = len(ours(strategy, bars, kernel_numba.walk).trades)
    row(
        f"EMA cross + RSI on 100,000 bars, numba ({trades} trades)",
        f"{found['numba']:.2f} ms",
        "≤ 5 ms",
        found["numba"] <= 5,
    )
    row("the same, numpy", f"{found['numpy']:.2f} ms", "≤ 15 ms", found["numpy"] <= 15)
    ratio = found["theirs"] / found["whole"]
    both = f"{found['whole']:.2f} / {found['theirs']:.2f} ms"
    row(f"with all figures / raptorbt ({theirs(bars)} trades)", f"{ratio:.1f} × faster ({both})", "≥ 1 ×", ratio >= 1)
    row(
        "trades and equity alone, numba / numpy",
        f"{found['numba alone']:.2f} / {found['numpy alone']:.2f} ms",
        "(none)",
        True,
    )
    row("the same with three stops", f"{found['numba stops']:.2f} / {found['numpy stops']:.2f} ms", "(none)", True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
