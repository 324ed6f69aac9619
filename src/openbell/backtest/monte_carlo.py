"""Monte Carlo simulations: the trades of a run, drawn again and again in random order and with repetition.

One run shows one order of its trades. The simulations show how far the return and the drawdown of a strategy with such
trades can differ by chance. Drawdowns are measured at the ends of trades. The trades are taken as independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from openbell.backtest.engine import MOST_CASH
from openbell.backtest.trades import Trades
from openbell.market.bars import Values
from openbell.market.errors import InvalidParameter

USUAL_SIMULATIONS, MOST_SIMULATIONS = 1_000, 1_000_000
FEWEST_TRADES = 2
_LARGEST_RETURN = 1e100
"""Of a trade. The cash of a simulation is below `MOST_CASH` before each trade, so that its product is finite."""
_LEVELS = (5, 25, 50, 75, 95)
_STEPS = 64
"""Trades after which progress is reported."""


class Percentiles(NamedTuple):
    """Values that 5, 25, 50, 75 and 95 per cent of the simulations do not exceed."""

    p5: float
    p25: float
    p50: float
    p75: float
    p95: float


@dataclass(frozen=True, slots=True)
class MonteCarlo:
    """The result of the simulations. Shares are fractions: 0.25 is 25 %."""

    simulations: int
    trades: int
    """Of the run, and of each simulation."""
    seed: int
    total_return: Percentiles
    """Less than −1 if shorts lose more than the cash."""
    max_drawdown: Percentiles
    loss_probability: float
    """The share of simulations that end with less than they began with."""
    drawdown_limit: float
    drawdown_probability: float
    """The share of simulations with a drawdown of more than `drawdown_limit`."""


def monte_carlo(
    returns: Values,
    *,
    simulations: int = USUAL_SIMULATIONS,
    seed: int = 0,
    drawdown_limit: float = 0.2,
    progress: Callable[[int, int], None] | None = None,
) -> MonteCarlo:
    """Simulate runs of as many trades as there are returns, each drawn from all of them.

    The same arguments give the same result to the bit. `progress` is as in `walk_forward`. Raises `InvalidParameter`.
    """
    _check(returns, simulations, seed, drawdown_limit)
    chance = np.random.default_rng(seed)
    growth, highest, drawdown = np.ones(simulations), np.ones(simulations), np.zeros(simulations)
    factors, count = 1.0 + returns, len(returns)
    for done in range(1, count + 1):
        drawn = factors[chance.integers(count, size=simulations)]
        # As in a run: nothing is traded after the cash is used up.
        usable = (growth > 0.0) & (growth < MOST_CASH)
        np.multiply(growth, drawn, out=growth, where=usable)
        np.maximum(highest, growth, out=highest)
        np.maximum(drawdown, 1.0 - growth / highest, out=drawdown)
        if progress and (done % _STEPS == 0 or done == count):
            progress(done, count)
    return MonteCarlo(
        simulations,
        count,
        seed,
        _percentiles(growth - 1.0),
        _percentiles(drawdown),
        float((growth < 1.0).mean()),
        drawdown_limit,
        float((drawdown > drawdown_limit).mean()),
    )


def trade_returns(trades: Trades, cash: float) -> Values:
    """Returns the profit of each trade of a run as a share of the cash before it. `cash` is that at the start."""
    return trades.profit / (cash + np.cumsum(np.append(0.0, trades.profit[:-1])))[: len(trades)]


def _check(returns: Values, simulations: int, seed: int, drawdown_limit: float) -> None:
    if len(returns) < FEWEST_TRADES:
        raise InvalidParameter(f"the run has {len(returns)} trades, and simulations need at least {FEWEST_TRADES}")
    if not np.isfinite(returns).all() or float(np.abs(returns).max()) > _LARGEST_RETURN:
        raise InvalidParameter(f"the return of a trade must be a number of at most {_LARGEST_RETURN:g}")
    if not 1 <= simulations <= MOST_SIMULATIONS:
        raise InvalidParameter(f"simulations must be from 1 to {MOST_SIMULATIONS:,}, not {simulations}")
    if not 0 <= seed < 2**63:
        raise InvalidParameter(f"the seed must be a whole number from 0 to less than 2^63, not {seed}")
    if not 0 <= drawdown_limit <= 1:
        raise InvalidParameter(f"the limit of the drawdown must be a share from 0 to 1, not {drawdown_limit}")


def _percentiles(values: Values) -> Percentiles:
    return Percentiles(*(float(each) for each in np.percentile(values, _LEVELS)))
