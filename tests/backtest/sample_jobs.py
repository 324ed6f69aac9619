"""One job of each kind, and the bits of any result."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from openbell.backtest.jobs import BacktestJob, Job, MonteCarloJob, PortfolioJob, WalkForwardJob
from openbell.backtest.portfolio import PortfolioPart
from openbell.backtest.rules import Setup
from openbell.backtest.walk_forward import By, Windows, usual_windows
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.reading import read_spec
from tests.backtest.test_runs import with_stops
from tests.strategies.specs import crossover, walk
from tests.strategies.stretches import stock_hours

SPEC = read_spec(crossover())
BARS = walk(11, 1500)
SETUP = Setup(cash=12_345.67, fee=0.0007, slippage=0.0003)
COMBINATIONS = [{"smaPeriod": fast, "emaPeriod": slow} for fast in (3, 5) for slow in (9, 20)]
VWAP = {
    "name": "VWAP_CROSS",
    "indicators": [{"id": "vwap", "type": "VWAP"}],
    "entryConditions": [{"type": "CROSSED_UP", "indicator": "close", "params": {"crosses": "vwap.vwap"}}],
    "exitConditions": [{"type": "CROSSED_DOWN", "indicator": "close", "params": {"crosses": "vwap.vwap"}}],
    "parameters": [],
}
"""It needs the regular-hours part of a stock's hours."""


def jobs() -> dict[str, Job[Any]]:
    """Jobs of all kinds."""
    one, short, hours = compiled(SPEC), with_stops(), stock_hours(20)
    start, end = float(BARS.time[300]), float(BARS.time[1200])
    parts = [
        PortfolioPart(one, BARS, 0.5),
        PortfolioPart(short, walk(2, 900, "ETH/USD"), 0.25),
        PortfolioPart(one, walk(3, 60, "AAPL", Timeframe.D1), 0.1),
    ]
    return {
        "backtest": BacktestJob(one, BARS, SETUP),
        "backtest of a range": BacktestJob(one, BARS, SETUP, start, end),
        "backtest with stops": BacktestJob(short, BARS, SETUP, start),
        "backtest without trades": BacktestJob(one, BARS.take(slice(0, 3)), SETUP),
        "backtest of regular hours": BacktestJob(compiled(read_spec(VWAP)), hours.bars, SETUP, regular=hours.regular),
        "walk-forward": WalkForwardJob(SPEC, BARS, COMBINATIONS, SETUP, usual_windows(len(BARS))),
        "walk-forward, anchored": WalkForwardJob(
            SPEC, BARS, COMBINATIONS, SETUP, Windows(400, 100, 150, anchored=True, first=30), By.SCORE
        ),
        "monte carlo": MonteCarloJob(np.random.default_rng(1).normal(0.01, 0.1, 60), 500, 42, 0.3),
        "portfolio": PortfolioJob(parts, SETUP),
        "portfolio of a range": PortfolioJob(parts[:2], SETUP, start, end),
    }


def image(value: Any) -> bytes:
    """The bits of a result, whatever it is."""
    return pickle.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *((each.name, _plain(getattr(value, each.name))) for each in fields(value))]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(_plain, value)]
    if isinstance(value, dict):
        return [(name, _plain(each)) for name, each in value.items()]
    return value
