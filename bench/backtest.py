"""EMA crossings with an RSI filter on 100,000 bars: one backtest beside raptorbt, and a sweep beside vectorbt."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import raptorbt

from measure import ms, row, timed
from openbell.backtest.engine import Run, simulate
from openbell.backtest.grids import grid
from openbell.backtest.kernel import Kernel, walk
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.sweeps import sweep
from openbell.feeds.sim.bars import minute_bars
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


# Vectorbt is no dependency of the project: its environment is made here.
RIVAL = Path(__file__).resolve().parent.parent / ".vectorbt-venv"
VECTORBT = "vectorbt==1.2.0"
FASTS, SLOWS, LEVELS = list(range(5, 15)), list(range(20, 60, 4)), [float(level) for level in range(60, 80, 2)]
TURNS = 5
SWEPT = {
    **SPEC,
    "indicators": [
        {"id": "fast", "type": "EMA", "params": {"length": "${fast}"}},
        {"id": "slow", "type": "EMA", "params": {"length": "${slow}"}},
        {"id": "rsi", "type": "RSI", "params": {"length": 14}},
    ],
    "entryConditions": [
        {"type": "CROSSED_UP", "indicator": "fast", "params": {"crosses": "slow"}},
        {"type": "UNDER", "indicator": "rsi", "params": {"value": "${level}"}},
    ],
    "parameters": [
        {"name": "fast", "type": "INTEGER", "min": 2, "max": 30, "defaultValue": 9},
        {"name": "slow", "type": "INTEGER", "min": 10, "max": 100, "defaultValue": 21},
        {"name": "level", "type": "DOUBLE", "min": 50, "max": 90, "defaultValue": 70},
    ],
}


def rival() -> list[str]:
    """The command that runs vectorbt; its environment is made at the first call. Empty if it cannot be installed."""
    python = RIVAL / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = RIVAL / "installed"
    if not stamp.exists() or stamp.read_text() != VECTORBT:
        print("making .vectorbt-venv …", file=sys.stderr)
        install = [sys.executable, str(RIVAL.parent / ".ci" / "install.py"), "--new", str(RIVAL), VECTORBT]
        if subprocess.run(install, stdout=sys.stderr, check=False).returncode:
            return []
        stamp.write_text(VECTORBT)
    return [str(python), "-W", "ignore", str(Path(__file__).with_name("vectorbt_sweep.py"))]


def sweeps(bars: Bars) -> None:
    """1,000 combinations in one thread. Theirs are run in parts between ours, so that other work slows both."""
    spec = read_spec(SWEPT)
    chosen = grid(spec, {"fast": FASTS, "slow": SLOWS, "level": LEVELS}).combinations
    run = partial(sweep, spec, bars, chosen, Setup())
    found = run()
    trades = sum(each.metrics.trades for each in found.rows)
    command = rival()
    if not command:
        row(f"{len(chosen):,} combinations, all figures", f"{ms(timed(run, 3)) / 1000:.2f} s", "(no vectorbt)", True)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bars.npz"
        np.savez(file, open=bars.open, close=bars.close)
        pipe = subprocess.PIPE
        with subprocess.Popen([*command, str(file)], stdin=pipe, stdout=pipe, text=True) as process:
            assert process.stdin and process.stdout
            process.stdout.readline()
            ours, theirs, their_trades = [0.0] * 0, 0.0, 0
            for turn in range(TURNS):
                ours += timed(run, 1)
                process.stdin.write(json.dumps([FASTS[turn::TURNS], SLOWS, LEVELS]) + "\n")
                process.stdin.flush()
                seconds, count = json.loads(process.stdout.readline())
                theirs, their_trades = theirs + seconds, their_trades + count
            process.stdin.close()
    mine = statistics.median(ours)
    ratio, what = theirs / mine, f"{len(chosen):,} combinations, all figures / vectorbt's three"
    row(
        f"{what} ({trades:,} / {their_trades:,} trades)",
        f"{ratio:.0f} × ({mine:.2f} / {theirs:.1f} s)",
        "≥ 20 ×",
        ratio >= 20,
    )


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
        "numpy": partial(ours, strategy, bars, walk),
        "whole": partial(backtest, strategy, bars, Setup()),
        "theirs": partial(theirs, bars),
        "numba alone": partial(simulate, bars, conditions, strategy.side, {}, Setup(), kernel_numba.walk),
        "numpy alone": partial(simulate, bars, conditions, strategy.side, {}, Setup(), walk),
        "numba stops": partial(simulate, bars, conditions, strategy.side, STOPS, Setup(), kernel_numba.walk),
        "numpy stops": partial(simulate, bars, conditions, strategy.side, STOPS, Setup(), walk),
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
    sweeps(bars)
    return 0


if __name__ == "__main__":
    sys.exit(main())
