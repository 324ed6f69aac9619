"""Whether a run is better than the same exposure without timing: two tests, which must agree.

A strategy that is long half of the time earns half of what the market earns, with any signal. Against *holding*, its returns
are regressed on those of the instrument: alpha is what the exposure does not explain. Against *random timing*, its own
trades are placed at random over the same bars, with their holding times, side and slippage.

Each result is a number of standard deviations; `confidence` converts it into the probability that the best of so many tries
without any timing would have less. The number of tries is known only when a search or a sweep has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, sqrt
from statistics import NormalDist

import numpy as np

from openbell.backtest.curve import NOISE, bar_returns, returns_of
from openbell.backtest.engine import Run
from openbell.backtest.rules import END, SIGNAL, TARGET, Setup, factors
from openbell.backtest.trades import Indexes, Trades, sign_of
from openbell.market.bars import Bars, Values
from openbell.market.plural import counted
from openbell.strategies.implementations import FEWEST_TRADES

CONFIDENT = 0.95
"""Both confidences of an edge are at least this."""
DRAWS = 1000
"""Fewer if there are very many trades: their sum deviates little."""
_FEWEST_DRAWS = 200
_MOST_PLACED = 5_000_000
"""Draws times trades of one test: 0.2 s."""
_SEED = 20
_NORMAL = NormalDist()
_CELLS = 1_000_000
"""Draws times trades that are placed at a time: 30 MB."""


@dataclass(frozen=True, slots=True)
class RunTiming:
    """How far a run is above the same exposure without timing, in standard deviations. None if it cannot be computed."""

    trades: int
    alpha: float | None
    """The return of a bar that holding with the same exposure does not explain."""
    above_holding: float | None
    """The t-value of alpha."""
    above_random: float | None

    def edge(self, tries: int) -> Edge:
        """Returns what this proves if it is the best of so many tries."""
        holding, random = (
            None if self.trades < FEWEST_TRADES or value is None else confidence(value, tries)
            for value in (self.above_holding, self.above_random)
        )
        return Edge(self.trades, tries, holding, random)


@dataclass(frozen=True, slots=True)
class Edge:
    """The verdict of both tests after some tries."""

    trades: int
    tries: int
    vs_holding: float | None
    """The probability that the best of as many tries without timing has a lower alpha. None with too few trades."""
    vs_random_timing: float | None
    """The same against the run's own trades at random times."""

    @property
    def proven(self) -> bool:
        """True if both tests agree that this is hardly luck."""
        return min(self.vs_holding or 0.0, self.vs_random_timing or 0.0) >= CONFIDENT

    def sentence(self, *, since_submission: bool = False) -> str:
        """Returns the verdict in plain words. `since_submission`: earlier trades were left out."""
        if since_submission:
            return f"since its submission, {self.sentence()}"
        after = "" if self.tries == 1 else f" after {counted(self.tries, 'try', 'tries')}"
        if self.trades < FEWEST_TRADES:
            return f"{counted(self.trades, 'trade')} cannot tell timing from luck: at least {FEWEST_TRADES} are needed"
        if self.vs_holding is None or self.vs_random_timing is None:
            return "timing cannot be told from luck: the price or the equity gives no returns to compare"
        found = (
            f"it beats {share(self.vs_holding)} of strategies that hold as much without timing, and "
            f"{share(self.vs_random_timing)} of its own trades at random times{after}"
        )
        if self.proven:
            return f"{found}: its timing is probably skill, unless its rules were chosen on these bars"
        return f"{found}: below {share(CONFIDENT)} in either, it shows no skill"


def confidence(deviations: float, tries: int) -> float:
    """Returns the probability that the best of independent tries without an edge is fewer deviations above the mean."""
    return float(_NORMAL.cdf(deviations) ** tries)


def share(value: float) -> str:
    """Returns a probability in per cent, rounded down from 50 % on, never to none or all."""
    if value < 0.5:
        return f"{value * 100:.0f} %" if value >= 0.005 else "less than 1 %"
    return f"{floor(value * 100 + 1e-9)} %" if value < 0.99 else "more than 99 %"


def timing_of(run: Run, bars: Bars, setup: Setup, first: int = 0) -> RunTiming:
    """Returns how far the part of a run from bar `first` on is above the same exposure without timing.

    `bars` are all bars of the run. Trades that were entered before `first` are left out of the test of random timing.
    """
    trades = run.trades.entered_from(first)
    equity, some = run.equity[max(first - 1, 0) :], bars.take(slice(first, None))
    alpha, above = None, None
    returns = bar_returns(equity)
    if returns is not None and len(some):
        own = returns if first == 0 else returns[1:]
        before = float(bars.open[0]) if first == 0 else float(bars.close[first - 1])
        alpha, above = _alpha(own, returns_of(some.close, before))
    return RunTiming(len(trades), alpha, above, _above_random(trades, some, setup))


def _alpha(returns: Values, market: Values) -> tuple[float | None, float | None]:
    """Returns the alpha of a bar and its t-value. The variance of a return may differ from bar to bar (HC1)."""
    count = len(returns)
    moved = market - market.mean()
    squares = float(np.square(moved).sum())
    if count < 3 or squares <= NOISE * float(np.square(market).sum()):
        return None, None
    beta = float((moved * returns).sum()) / squares
    alpha = float(returns.mean()) - beta * float(market.mean())
    rest = returns - alpha - beta * market
    weights = 1.0 / count - float(market.mean()) * moved / squares
    if float(np.abs(rest).max()) <= NOISE * float(np.abs(market).max()):
        return 0.0, None  # always invested: what is left is rounding
    deviation = sqrt(float(np.square(weights * rest).sum()) * count / (count - 2))
    return alpha, alpha / deviation


def _above_random(trades: Trades, bars: Bars, setup: Setup) -> float | None:
    """Returns how many deviations the sum of the trades' returns is above that of the same trades at random times."""
    if len(trades) < 2:
        return None
    drawn = random_sums(trades, bars, setup)
    spread = float(drawn.std(ddof=1))
    if not spread > NOISE * float(np.abs(drawn).max()):
        return None
    earned = sign_of(trades.side) * (trades.exit_price / trades.entry_price - 1.0)
    above = (float(earned.sum()) - float(drawn.mean())) / max(spread, _own_spread(trades, bars))
    skew = float(np.mean(((drawn - drawn.mean()) / spread) ** 3))
    return _normal(above, skew)


def _own_spread(trades: Trades, bars: Bars) -> float:
    """Returns the deviation of the sum of the trades' returns by the bars that were held.

    A strategy that trades in wild times deviates further by luck than its trades at random times do.
    """
    prices, count = np.append(bars.open, bars.close[-1]), len(bars)
    before = np.append(0.0, np.square(np.diff(prices) / prices[:-1]).cumsum())
    held = _held(trades)
    squares = float((before[trades.entry_index + held] - before[trades.entry_index]).sum())
    return sqrt(squares * (1.0 - int(held.sum()) / count))


def _held(trades: Trades) -> Indexes:
    """Returns how many bars each position was held."""
    held = trades.exit_index - trades.entry_index
    held[trades.reason == END] += 1
    # A stop fills inside its bar, which was held for half of its time: every other one counts as a whole bar.
    stopped = ((trades.reason != SIGNAL) & (trades.reason != END)).nonzero()[0]
    held[stopped[::2]] += 1
    return held


def random_sums(trades: Trades, bars: Bars, setup: Setup, draws: int | None = None) -> Values:
    """Returns the sum of the trades' returns for each draw. Fees are left out: every draw pays those of the run.

    Each draw puts the trades in a random order, with their holding times and slippage, and the bars without a position at
    random between them.
    """
    held = _held(trades)
    free, count = len(bars) - int(held.sum()), len(trades)
    prices = np.append(bars.open, bars.close[-1])
    by = factors(trades.side, {}, setup)
    limits = (trades.reason == TARGET) | ((trades.reason == END) & (not setup.closes_at_end))
    costs = np.where(limits, 1.0, by.leave) / by.enter
    sign, random = sign_of(trades.side), np.random.default_rng(_SEED)
    draws = draws or min(DRAWS, max(_MOST_PLACED // count, _FEWEST_DRAWS))
    found = []
    for at in range(0, draws, step := max(_CELLS // count, 1)):
        rows = min(step, draws - at)
        order = random.permuted(np.broadcast_to(np.arange(count), (rows, count)), axis=1)
        lengths = held[order]
        starts = np.sort(random.integers(0, free + 1, (rows, count)), axis=1)
        starts[:, 1:] += lengths.cumsum(axis=1)[:, :-1]
        ratio = prices[starts + lengths] / prices[starts]
        found.append((sign * (ratio * costs[order] - 1.0)).sum(axis=1))
    return np.concatenate(found)


def _normal(deviations: float, skew: float) -> float:
    """Returns the deviations of a normal distribution that are as rare as these, if the draws have a long upper tail.

    That of a gamma distribution of the same skew, by Wilson and Hilferty. Draws with a long lower tail count as normal.
    """
    if skew <= 0.01 or deviations <= 0.0:
        return deviations
    return float(6.0 / skew * ((skew / 2.0 * deviations + 1.0) ** (1.0 / 3.0) - 1.0) + skew / 6.0)
