"""The compiled curve has the bits of numpy's, for every number of bars and every kind of run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from openbell.backtest import kernel_numba
from openbell.backtest.curve import Curve, bar_returns, curve_of, holding_of, returns_of
from openbell.backtest.engine import equity_of, trades_of
from openbell.backtest.rules import Setup
from openbell.backtest.sweep_runs import BlockSums, block_edges, block_sums
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import PositionSide
from tests.backtest.masks import Case, Row, at, bars_of, cases
from tests.counts import runs
from tests.strategies.specs import walk

EQUAL_CURVES = runs(300, soak=3000)


def both(case: Case, blocks: int) -> list[tuple[Curve, BlockSums]]:
    """The curve and the block sums of a run by numpy and by numba."""
    bars, conditions, side, stops, setup = case
    trades, cash = trades_of(bars, conditions, side, stops, setup, kernel_numba.walk)
    holding = holding_of(returns_of(bars.close, float(bars.open[0])))
    edges = block_edges(len(bars), blocks)
    equity = equity_of(trades, cash, bars.close)
    found = []
    for each, returns, fall in (equity, bar_returns(equity), None), kernel_numba.curve(trades, cash, bars.close):
        found.append((curve_of(each, returns, holding, fall), block_sums(returns, edges)))
    return found


def image(found: tuple[Curve, BlockSums]) -> tuple[object, ...]:
    return repr(found[0]), found[1].sums.tobytes(), found[1].squares.tobytes()


@given(cases())
@settings(max_examples=EQUAL_CURVES, deadline=None)
def test_random_runs_have_equal_bits(case: Case) -> None:
    if len(case[0]):
        numpy, numba = both(case, 4)
        assert image(numpy) == image(numba)


@pytest.mark.parametrize("side", PositionSide)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 127, 128, 129, 136, 255, 256, 257, 1000, 4097, 100_003])
def test_any_number_of_bars(count: int, side: PositionSide) -> None:
    bars, chance = walk(count, count), np.random.default_rng(count)
    conditions = Conditions(chance.random(count) < 0.1, chance.random(count) < 0.1)
    for blocks in (0, 1, 8, 16):
        numpy, numba = both((bars, conditions, side, {}, Setup(fee=0.0001)), blocks)
        assert image(numpy) == image(numba)


def test_a_price_that_does_not_move_and_a_run_without_trades() -> None:
    flat: list[Row] = [(100, 100, 100, 100)] * 300
    for conditions in (at(300, []), at(300, [1], [200])):
        numpy, numba = both((bars_of(flat), conditions, PositionSide.LONG, {}, Setup(fee=0.0)), 4)
        assert image(numpy) == image(numba)
        assert numba[0].returns
        assert (numba[0].returns.deviation, numba[0].returns.shared, numba[0].drawdown) == (0.0, 0.0, 0.0)


def test_a_run_that_loses_everything_has_no_returns() -> None:
    rows: list[Row] = [(100, 100, 100, 100), (100, 300, 100, 300), (300, 300, 300, 300), (300, 300, 300, 300)]
    numpy, numba = both((bars_of(rows), at(4, [0], [1]), PositionSide.SHORT, {}, Setup(fee=0.0)), 2)
    assert image(numpy) == image(numba)
    assert numba[0].returns is None
    assert np.isnan(numba[1].sums).all()
    assert numba[0].drawdown == 2.0


def test_blocks_are_consecutive_and_differ_by_at_most_a_bar() -> None:
    edges = block_edges(103, 8)
    assert (edges[0], edges[-1], len(edges)) == (0, 103, 9)
    assert set(np.diff(edges)) == {12, 13}
    returns = np.arange(103.0)
    found = block_sums(returns, edges)
    assert found.sums.sum() == returns.sum()
    assert found.squares[0] == sum(n * n for n in range(edges[1]))
