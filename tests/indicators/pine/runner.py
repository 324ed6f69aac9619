"""Runs every script of this folder over series of bars, in a process of its own: PyneCore changes how Python imports.

A script returns a value for each line at each bar, under the name of the indicator and the label of its line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import time
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from openbell.market.bars import Bars, Values
from tests.indicators.pine.chosen import CHOSEN

HERE = Path(__file__).parent
SCRIPTS = ("averages", "oscillators", "volume")
PERIODS = {3600: "60", 86400: "1D"}
FOREX = ("EURUSD",)
"""Series whose days begin at 17:00 in New York; those of others begin at midnight UTC."""


class Case(NamedTuple):
    """A series of bars, and parameters of indicators that differ from TradingView's defaults."""

    on: str
    bars: Bars
    chosen: Mapping[str, Mapping[str, object]] = {}


def pine_lines(cases: Sequence[Case], folder: Path) -> list[dict[str, Values]]:
    """The lines of all scripts for each case by `indicator.label`; NaN is TradingView's na."""
    given, found = folder / "bars.npy", folder / "lines.npy"
    np.save(given, np.concatenate([np.stack(each.bars.columns()) for each in cases], axis=1))
    parts = [(each.on, each.bars.timeframe.seconds, len(each.bars), _flat(each.chosen)) for each in cases]
    command = [sys.executable, "-m", "tests.indicators.pine.runner", str(given), str(found), json.dumps(parts)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=HERE.parents[2])
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout)
    ends = list(accumulate(len(each.bars) for each in cases))[:-1]
    return [dict(zip(names, lines, strict=True)) for lines in np.split(np.load(found), ends, axis=1)]


def _flat(chosen: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    return {f"{name}.{parameter}": value for name, each in chosen.items() for parameter, value in each.items()}


def main(given: str, found: str, parts: str) -> None:
    """Reads bars, writes the lines of all scripts, and prints the names of the lines."""
    from pynecore.types.ohlcv import OHLCV

    columns = np.load(given)
    lines: dict[str, list[float]] = {}
    first = 0
    for name, seconds, count, chosen in json.loads(parts):
        CHOSEN.clear()
        CHOSEN.update(chosen)
        rows = columns[:, first : first + count].T.tolist()
        first += count
        for line, values in run_scripts([OHLCV(int(at) * 1000, *row) for at, *row in rows], name, seconds).items():
            lines.setdefault(line, []).extend(values)
    np.save(found, np.array(list(lines.values())))
    print(json.dumps(list(lines)))


def run_scripts(bars: list[Any], name: str, seconds: int) -> dict[str, list[float]]:
    """The lines of all scripts over one series."""
    from pynecore.core.script_runner import ScriptRunner

    lines: dict[str, list[float]] = {}
    for script in SCRIPTS:
        runner = ScriptRunner(
            HERE / f"{script}.py",
            iter(bars),
            market(name, seconds),
            last_bar_index=len(bars) - 1,
            # Otherwise prices are rounded to the tick, and volumes to the digits of a 32-bit number.
            lossless_prices=True,
            lossless_volume=True,
        )
        rows = [row for _, row in runner.run_iter()]
        lines |= {line: [float(row[line]) for row in rows] for line in rows[0]}
    return lines


def market(name: str, seconds: int) -> Any:
    """Open around the clock by UTC, or for a currency from Sunday to Friday in New York."""
    from pynecore.core.syminfo import SymInfo, SymInfoInterval, SymInfoSession

    forex = name in FOREX
    begins, days = (time(17), [6, 0, 1, 2, 3]) if forex else (time(0), list(range(7)))
    hours = [SymInfoInterval(day, begins, time(0)) for day in days]
    if forex:
        hours += [SymInfoInterval(day, time(0), time(17)) for day in range(5)]
    return SymInfo(
        prefix="TEST",
        description=name,
        ticker=name,
        currency="USD",
        type="forex" if forex else "crypto",
        timezone="America/New_York" if forex else "UTC",
        period=PERIODS[seconds],
        mintick=1e-8,
        pricescale=10**8,
        pointvalue=1.0,
        mincontract=1e-8,
        opening_hours=hours,
        session_starts=[SymInfoSession(day, begins) for day in days],
        session_ends=[SymInfoSession((day + 1) % 7 if forex else day, begins) for day in days],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
