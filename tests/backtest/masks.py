"""Bars and conditions written out by hand, and random ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import strategies as st

from openbell.backtest import kernel_numba
from openbell.backtest.kernel import Kernel, walk
from openbell.backtest.rules import Setup
from openbell.market.bars import Bars, make
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import ConditionType, PositionSide

KERNELS: dict[str, Kernel] = {"numpy": walk, "numba": kernel_numba.walk}
ENOUGH = 1e14
"""Volume that no order exceeds."""
Row = tuple[float, float, float, float]


def bars_of(rows: Sequence[Row]) -> Bars:
    """Hourly bars with these opens, highs, lows and closes."""
    columns = np.array(rows, dtype=float).reshape(-1, 4).T
    times = 1_700_006_400 + 3600 * np.arange(len(rows))
    return make(parse("BTC/USD"), Timeframe.H1, times, *columns, np.full(len(rows), ENOUGH))


def at(count: int, entries: Iterable[int], exits: Iterable[int] = ()) -> Conditions:
    """Conditions that hold at the closes of these bars."""
    entry, leave = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    entry[list(entries)], leave[list(exits)] = True, True
    return Conditions(entry, leave)


Case = tuple[Bars, Conditions, PositionSide, dict[ConditionType, float], Setup]
STOPS = (ConditionType.STOP_LOSS, ConditionType.TRAILING_STOP_LOSS, ConditionType.STOP_GAIN)


@st.composite
def cases(draw: st.DrawFn, most: int = 80) -> Case:
    """A random walk, often on a grid so that prices equal levels, with random conditions, stops and costs."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(0, most))
    grid = draw(st.booleans())
    step = draw(st.sampled_from([0.002, 0.02, 0.2]))
    close = 100 * np.exp(np.cumsum(chance.normal(0, step, count)))
    opened = np.concatenate(([100.0], close[:-1]))[:count] * np.exp(chance.normal(0, step / 2, count))
    high = np.maximum(opened, close) * (1 + chance.exponential(step / 2, count))
    low = np.minimum(opened, close) * (1 - chance.exponential(step / 2, count).clip(0, 0.5))
    rows = np.array([opened, high, low, close])
    if grid:
        rows = np.maximum(np.round(rows), 1.0)
    times = 1_700_006_400 + 3600 * np.arange(count)
    bars = make(parse("BTC/USD"), Timeframe.H1, times, *rows, np.full(count, ENOUGH))
    often = draw(st.tuples(st.sampled_from([0.05, 0.3, 0.9]), st.sampled_from([0.0, 0.05, 0.3])))
    conditions = Conditions(chance.random(count) < often[0], chance.random(count) < often[1])
    distance = st.sampled_from([0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 120.0]) | st.floats(0.01, 20.0)
    stops = draw(st.dictionaries(st.sampled_from(STOPS), distance))
    cost = st.sampled_from([0.0, 0.001, 0.01, 0.1])
    return bars, conditions, draw(st.sampled_from(PositionSide)), stops, Setup(fee=draw(cost), slippage=draw(cost))
