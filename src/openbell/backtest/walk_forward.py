"""Walk-forward tests: parameters are chosen on one stretch of bars and traded on the next, which the choice did not use.

Bars are divided into windows, each with a training part and the test part that follows it. The best parameters of the
training part trade the test part. The test parts, one after the other, are the walk-forward run: what a trader would have
earned who had chosen parameters again at the start of each test part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from typing import TypeVar

import numpy as np

from openbell.backtest.engine import MOST_CASH, Run
from openbell.backtest.metrics import RunMetrics, measure, ratio
from openbell.backtest.rules import Setup
from openbell.backtest.runs import Backtest, Progress, traded
from openbell.backtest.trades import Trades
from openbell.market.bars import Bars
from openbell.market.errors import InsufficientData, InvalidParameter
from openbell.market.plural import counted
from openbell.strategies.compiled import compiled
from openbell.strategies.evaluation import Known, evaluate
from openbell.strategies.spec import Number, Spec

T = TypeVar("T")
FEWEST_TRADES = 10
"""A strategy with fewer walk-forward trades is refused: its figures are chance."""
LARGEST_FALL = 0.5
"""A strategy is refused if its Sharpe falls by a larger share from training to test."""
USUAL_WINDOWS = 5
USUAL_TEST_SHARE = 0.2


class By(StrEnum):
    """The figure by which parameters are chosen; higher is better."""

    SHARPE = "sharpe"
    SORTINO = "sortino"
    CALMAR = "calmar"
    RETURN = "return"
    SCORE = "score"


@dataclass(frozen=True, slots=True)
class Windows:
    """How bars are divided, in numbers of bars. Raises `InvalidParameter`."""

    train: int
    """The bars of a training part; with `anchored`, those of the first one."""
    test: int
    step: int | None = None
    """From one window to the next; `test` by default. Not less than `test`, so that no bar is tested twice."""
    anchored: bool = False
    """All training parts begin at the first bar, so that they grow."""
    first: int = 0
    """The index of the first bar of the first window. Earlier bars only warm up indicators."""

    def __post_init__(self) -> None:
        for name, least in (("train", 2), ("test", 2), ("first", 0)):
            if getattr(self, name) < least:
                raise InvalidParameter(f"{name} must be at least {least} bars, not {getattr(self, name)}")
        if self.stride < self.test:
            raise InvalidParameter(f"step must be at least as long as test, {self.test} bars, not {self.step}")

    @property
    def stride(self) -> int:
        """The bars from one window to the next."""
        return self.test if self.step is None else self.step

    def over(self, count: int) -> list[tuple[range, range]]:
        """Returns the training and the test part of each window that fits into `count` bars, as indexes."""
        starts = range(self.first, count - self.train - self.test + 1, self.stride)
        splits = [start + self.train for start in starts]
        return [
            (range(self.first if self.anchored else split - self.train, split), range(split, split + self.test))
            for split in splits
        ]


def usual_windows(
    count: int,
    windows: int = USUAL_WINDOWS,
    test_share: float = USUAL_TEST_SHARE,
    *,
    anchored: bool = False,
    first: int = 0,
) -> Windows:
    """Returns windows that cover the bars from `first` to `count`, in which the test part is a share of the window.

    Parts are whole bars: a remainder at the start only warms up indicators. Raises `InvalidParameter`, also if there are too
    few bars for that many windows.
    """
    if windows < 1 or not 0 < test_share < 1:
        raise InvalidParameter("there must be at least one window, and the share of the test must be between 0 and 1")
    test = int((count - first) / (1 / test_share + windows - 1))
    train = round(test * (1 / test_share - 1))
    if test < 2 or train < 2:
        raise InvalidParameter(f"{count - first} bars are too few for {windows} windows")
    return Windows(train, test, anchored=anchored, first=max(first, count - train - windows * test))


@dataclass(frozen=True, slots=True)
class WalkForwardWindow:
    """The result of one window."""

    train: range
    """Indexes of the bars."""
    test: range
    parameters: Mapping[str, Number]
    """The best ones of the training part."""
    in_sample: RunMetrics
    out_of_sample: RunMetrics


@dataclass(frozen=True, slots=True, eq=False)
class WalkForward:
    """The result of a walk-forward test."""

    windows: tuple[WalkForwardWindow, ...]
    out_of_sample: Backtest
    """All test parts as one run: each continues with the cash of the one before it."""
    in_sample_sharpe: float
    """The mean over the training parts; a part whose Sharpe is undefined counts as 0."""
    degradation: float | None
    """1 − out-of-sample Sharpe / in-sample Sharpe. None if the in-sample Sharpe is not more than 0."""
    reasons: tuple[str, ...]
    """Why the strategy is refused; empty if it passed."""

    @property
    def passed(self) -> bool:
        """True if the strategy is not refused."""
        return not self.reasons

    @property
    def out_of_sample_sharpe(self) -> float | None:
        """The Sharpe of all test parts as one run."""
        return self.out_of_sample.metrics.sharpe


def walk_forward(
    spec: Spec,
    bars: Bars,
    combinations: Sequence[Mapping[str, Number]],
    setup: Setup,
    windows: Windows,
    *,
    by: By = By.SHARPE,
    regular: Bars | None = None,
    known: Known | None = None,
    progress: Progress | None = None,
) -> WalkForward:
    """Choose the best of the combinations on each training part, and trade it on the test part.

    Earlier bars warm up indicators, and no bar after a part has an effect on it: conditions are evaluated once over all
    bars, and those at a bar depend on that bar and earlier ones only. `regular` and `known` are as in `evaluate`. Of equal
    combinations the first is chosen. A position that is open at the end of a part pays its exit. Raises `InvalidParameter`,
    and `InsufficientData` if no window fits.
    """
    strategies = [compiled(spec, each) for each in combinations]
    if not strategies:
        raise InvalidParameter("there must be at least one combination of parameters")
    parts = windows.over(len(bars))
    if not parts:
        needed = windows.first + windows.train + windows.test
        raise InsufficientData(bars.instrument.symbol, len(bars), needed)
    setup = replace(setup, closes_at_end=True)  # each part begins without a position
    total, done = len(strategies) + len(parts) * (len(strategies) + 1), 0

    def finished(result: T) -> T:
        nonlocal done
        done += 1
        if progress:
            progress(done, total)
        return result

    evaluated = [(each, finished(evaluate(each, bars, regular, known))) for each in strategies]
    results, tested = [], []
    for train, test in parts:
        tried = [(each, finished(traded(*each, bars, setup, train)).metrics) for each in evaluated]
        chosen, in_sample = max(tried, key=lambda pair: figure(pair[1], by))
        tested.append(finished(traded(*chosen, bars, setup, test)))
        results.append(WalkForwardWindow(train, test, chosen[0].parameters, in_sample, tested[-1].metrics))
    whole = _joined([test for _, test in parts], tested, bars, setup)
    in_sharpe = float(np.mean([each.in_sample.sharpe or 0.0 for each in results]))
    out_sharpe = whole.metrics.sharpe
    kept = ratio(out_sharpe or 0.0, in_sharpe) if in_sharpe > 0 else None
    degradation = None if kept is None else 1.0 - kept
    return WalkForward(tuple(results), whole, in_sharpe, degradation, _reasons(whole.metrics, in_sharpe, degradation))


def figure(metrics: RunMetrics, by: By) -> float:
    """Returns the figure to compare; −∞ if it is undefined."""
    value: float | None = getattr(metrics, "total_return" if by is By.RETURN else by.value)
    return -inf if value is None else value


def _joined(parts: Sequence[range], tested: Sequence[Backtest], bars: Bars, setup: Setup) -> Backtest:
    """Returns the runs of all test parts as one. Trading ends with the part in which the cash is used up."""
    equity, trades, at, cash = [], [], 0, setup.cash
    for each in tested:
        usable = 0.0 < cash < MOST_CASH
        factor = cash / setup.cash
        equity.append(each.run.equity * factor if usable else np.full(len(each.bars), cash))
        if usable:
            trades.append(_moved(each.run.trades, at, factor))
        at, cash = at + len(each.bars), float(equity[-1][-1])
    columns = [np.concatenate(column) for column in zip(*(each.columns() for each in trades), strict=True)]
    run = Run(Trades(tested[0].run.trades.side, *columns), np.concatenate(equity))
    traded = tested_bars(bars, parts)
    return Backtest(traded, run, measure(run, traded))


def tested_bars(bars: Bars, parts: Sequence[range]) -> Bars:
    """Returns the bars of all test parts."""
    return bars.take(np.concatenate([np.arange(part.start, part.stop) for part in parts]))


def _moved(trades: Trades, bars: int, factor: float) -> Trades:
    """Returns trades at later bars, with their money multiplied."""
    return Trades(
        trades.side,
        trades.entry_index + bars,
        trades.exit_index + bars,
        trades.reason,
        trades.entry_price,
        trades.exit_price,
        *(each * factor for each in (trades.quantity, trades.entry_fee, trades.exit_fee, trades.profit)),
    )


def _reasons(metrics: RunMetrics, in_sample: float, degradation: float | None) -> tuple[str, ...]:
    found = []
    sharpe = metrics.sharpe or 0.0
    if metrics.trades < FEWEST_TRADES:
        found.append(f"it has {counted(metrics.trades, 'walk-forward trade')}, and {FEWEST_TRADES} are needed")
    if sharpe <= 0:
        found.append(f"its walk-forward Sharpe is {sharpe:.2f}, which is not more than 0")
    elif degradation is not None and degradation > LARGEST_FALL:
        found.append(
            f"its walk-forward Sharpe is {sharpe:.2f}, less than half of the {in_sample:.2f} of its training parts"
        )
    return tuple(found)
