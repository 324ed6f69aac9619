"""The engine: examples worked out by hand, both kernels alike, and the matcher as the reference."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from openbell.backtest.engine import Run, simulate
from openbell.backtest.kernel import Kernel
from openbell.backtest.rules import Reason, Setup
from openbell.backtest.trades import Trade
from openbell.market.errors import InvalidParameter
from openbell.strategies.evaluation import Conditions
from openbell.strategies.spec import ConditionType, PositionSide
from tests.backtest.masks import KERNELS, Case, Row, at, bars_of, cases
from tests.backtest.matcher_reference import reference_trades
from tests.counts import runs

LOSS, TRAIL, GAIN = ConditionType.STOP_LOSS, ConditionType.TRAILING_STOP_LOSS, ConditionType.STOP_GAIN
FREE = Setup(cash=1000.0, fee=0.0)
FLAT: Row = (100, 100, 100, 100)
EQUAL_KERNELS = runs(300, soak=3000)
EQUAL_TO_THE_MATCHER = runs(150, soak=2000)


@pytest.fixture(params=sorted(KERNELS))
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return KERNELS[request.param]


def outcome(trade: Trade) -> tuple[int, int, float, float, Reason]:
    return trade.entry_index, trade.exit_index, trade.entry_price, trade.exit_price, trade.reason


# Signals


def test_a_decision_at_a_close_fills_at_the_next_open(kernel: Kernel) -> None:
    rows: list[Row] = [(10, 11, 9, 10.5), (11, 12, 10, 11.5), (12, 13, 11, 12.5), (13, 14, 12, 13.5), (14, 15, 13, 14)]
    run = simulate(bars_of(rows), at(5, [0], [2]), PositionSide.LONG, {}, Setup(cash=1000.0, fee=0.01), kernel)

    (trade,) = run.trades
    quantity = 1000 / (11 * 1.01)
    assert outcome(trade) == (1, 3, 11.0, 13.0, Reason.SIGNAL)
    assert trade.quantity == pytest.approx(quantity, rel=1e-15)
    assert trade.entry_fee == pytest.approx(quantity * 0.11)
    assert trade.exit_fee == pytest.approx(quantity * 0.13)
    assert trade.profit == pytest.approx(quantity * (2 - 0.24))
    after_entry = 1000 - quantity * 0.11
    assert run.equity == pytest.approx(
        [1000, after_entry + quantity * 0.5, after_entry + quantity * 1.5, 1000 + trade.profit, 1000 + trade.profit]
    )


def test_a_decision_at_the_last_close_does_not_trade(kernel: Kernel) -> None:
    run = simulate(bars_of([FLAT] * 3), at(3, [2]), PositionSide.LONG, {}, FREE, kernel)
    assert len(run.trades) == 0
    run = simulate(bars_of([FLAT] * 3), at(3, [0], [2]), PositionSide.LONG, {}, FREE, kernel)
    assert [trade.reason for trade in run.trades] == [Reason.END]


def test_a_position_that_is_open_at_the_end_is_valued_at_the_last_close_without_a_fee(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, (100, 110, 100, 105), (105, 120, 105, 120)]
    run = simulate(bars_of(rows), at(3, [0]), PositionSide.LONG, {}, Setup(cash=1010.0, fee=0.01), kernel)
    (trade,) = run.trades
    assert outcome(trade) == (1, 2, 100.0, 120.0, Reason.END)
    assert (trade.quantity, trade.entry_fee, trade.exit_fee, trade.profit) == pytest.approx((10, 10, 0, 190))
    assert run.equity == pytest.approx([1010, 1050, 1200])


def test_a_position_can_be_entered_and_valued_in_the_last_bar(kernel: Kernel) -> None:
    run = simulate(bars_of([FLAT, (100, 110, 100, 105)]), at(2, [0]), PositionSide.LONG, {}, FREE, kernel)
    assert [outcome(trade) for trade in run.trades] == [(1, 1, 100.0, 105.0, Reason.END)]
    assert run.equity.tolist() == [1000.0, 1050.0]


def test_entries_are_ignored_while_a_position_is_held(kernel: Kernel) -> None:
    run = simulate(bars_of([FLAT] * 8), at(8, [0, 1, 2, 5], [3]), PositionSide.LONG, {}, FREE, kernel)
    assert [(trade.entry_index, trade.exit_index) for trade in run.trades] == [(1, 4), (6, 7)]


def test_where_both_hold_a_position_is_closed_and_opened_if_there_is_none(kernel: Kernel) -> None:
    both = simulate(bars_of([FLAT] * 8), at(8, [0, 3, 4], [0, 3]), PositionSide.LONG, {}, FREE, kernel)
    assert [(trade.entry_index, trade.exit_index) for trade in both.trades] == [(1, 4), (5, 7)]


def test_an_exit_at_the_close_of_the_entry_bar_leaves_at_the_next_open(kernel: Kernel) -> None:
    run = simulate(bars_of([FLAT] * 5), at(5, [0], [1]), PositionSide.LONG, {}, FREE, kernel)
    assert [(trade.entry_index, trade.exit_index) for trade in run.trades] == [(1, 2)]


# Stops


def one(
    rows: list[Row],
    stops: dict[ConditionType, float],
    kernel: Kernel,
    side: PositionSide = PositionSide.LONG,
    **costs: float,
) -> Trade:
    """The first trade of an entry at the open of the second bar."""
    setup = Setup(**({"cash": 1000.0, "fee": 0.0} | costs))  # type: ignore[arg-type]
    return next(iter(simulate(bars_of(rows), at(len(rows), [0]), side, stops, setup, kernel).trades))


def test_a_stop_fills_at_its_level(kernel: Kernel) -> None:
    trade = one([FLAT, (100, 101, 96, 97), (97, 98, 94, 97)], {LOSS: 5.0}, kernel)
    assert outcome(trade) == (1, 2, 100.0, 95.0, Reason.STOP_LOSS)
    assert trade.profit == pytest.approx(-50)


def test_a_stop_is_reached_by_touching_it(kernel: Kernel) -> None:
    assert one([FLAT, (100, 101, 95, 97), FLAT], {LOSS: 5.0}, kernel).reason is Reason.STOP_LOSS


def test_after_a_gap_a_stop_fills_at_the_open(kernel: Kernel) -> None:
    trade = one([FLAT, FLAT, (90, 99, 89, 98)], {LOSS: 5.0}, kernel)
    assert outcome(trade) == (1, 2, 100.0, 90.0, Reason.STOP_LOSS)
    trade = one([FLAT, FLAT, (110, 111, 99, 100)], {LOSS: 5.0}, kernel, PositionSide.SHORT)
    assert outcome(trade) == (1, 2, 100.0, 110.0, Reason.STOP_LOSS)


def test_a_stop_can_be_reached_in_the_bar_of_the_entry(kernel: Kernel) -> None:
    trade = one([FLAT, (100, 101, 94, 100), FLAT], {LOSS: 5.0}, kernel)
    assert outcome(trade) == (1, 1, 100.0, 95.0, Reason.STOP_LOSS)


def test_of_a_stop_and_a_target_in_one_bar_the_stop_counts(kernel: Kernel) -> None:
    trade = one([FLAT, FLAT, (100, 120, 94, 110)], {LOSS: 5.0, GAIN: 5.0}, kernel)
    assert outcome(trade) == (1, 2, 100.0, 95.0, Reason.STOP_LOSS)
    trade = one([FLAT, FLAT, (100, 120, 94, 110)], {TRAIL: 5.0, GAIN: 5.0}, kernel)
    assert outcome(trade) == (1, 2, 100.0, 95.0, Reason.TRAILING_STOP)


def test_of_both_stops_in_one_bar_the_stop_loss_counts(kernel: Kernel) -> None:
    trade = one([FLAT, (100, 110, 100, 109), (109, 109, 90, 91)], {LOSS: 5.0, TRAIL: 5.0}, kernel)
    assert outcome(trade) == (1, 2, 100.0, 95.0, Reason.STOP_LOSS)


def test_a_target_fills_only_if_the_price_trades_through_it(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, FLAT, (100, 125, 100, 103), (103, 126, 103, 104)]
    assert outcome(one(rows, {GAIN: 25.0}, kernel)) == (1, 3, 100.0, 125.0, Reason.TARGET)
    rows = [FLAT, FLAT, (100, 100, 75, 97), (97, 98, 74, 97)]
    assert outcome(one(rows, {GAIN: 25.0}, kernel, PositionSide.SHORT)) == (1, 3, 100.0, 75.0, Reason.TARGET)


def test_a_target_fills_at_an_open_that_is_better(kernel: Kernel) -> None:
    assert outcome(one([FLAT, FLAT, (130, 131, 129, 130)], {GAIN: 25.0}, kernel))[3:] == (130.0, Reason.TARGET)


def test_a_trailing_stop_follows_the_best_price_of_earlier_bars(kernel: Kernel) -> None:
    # The high of 120 raises the stop to 108, but not before the bar after it: its own low of 107 does not count.
    rows: list[Row] = [FLAT, (100, 110, 100, 110), (110, 120, 107, 118), (118, 119, 108, 110), FLAT]
    trade = one(rows, {TRAIL: 10.0}, kernel)
    assert outcome(trade) == (1, 3, 100.0, 108.0, Reason.TRAILING_STOP)


def test_a_trailing_stop_of_a_short_follows_the_lowest_price(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, (100, 100, 80, 81), (81, 87, 80, 86), (86, 88, 85, 86), FLAT]
    trade = one(rows, {TRAIL: 10.0}, kernel, PositionSide.SHORT)
    assert outcome(trade) == (1, 3, 100.0, 88.0, Reason.TRAILING_STOP)
    assert trade.profit == pytest.approx(120)


def test_after_a_stop_an_entry_at_the_close_of_the_same_bar_enters_at_the_next_open(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, (100, 100, 94, 100), FLAT, FLAT]
    run = simulate(bars_of(rows), at(4, [0, 1]), PositionSide.LONG, {LOSS: 5.0}, FREE, kernel)
    assert [(trade.entry_index, trade.exit_index) for trade in run.trades] == [(1, 1), (2, 3)]


def test_a_signal_leaves_at_the_open_before_the_stop_of_that_bar(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, FLAT, (100, 100, 94, 100), FLAT]
    run = simulate(bars_of(rows), at(4, [0], [1]), PositionSide.LONG, {LOSS: 5.0}, FREE, kernel)
    assert [outcome(trade) for trade in run.trades] == [(1, 2, 100.0, 100.0, Reason.SIGNAL)]


# Costs and shorts


def test_a_short_sells_the_value_of_the_cash_and_pays_fees_on_both_sides(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, (100, 100, 100, 95), (95, 95, 80, 82), (80, 80, 80, 80)]
    run = simulate(bars_of(rows), at(4, [0], [2]), PositionSide.SHORT, {}, Setup(cash=1010.0, fee=0.01), kernel)
    (trade,) = run.trades
    assert outcome(trade) == (1, 3, 100.0, 80.0, Reason.SIGNAL)
    assert (trade.quantity, trade.entry_fee, trade.exit_fee) == pytest.approx((10, 10, 8))
    assert trade.profit == pytest.approx(200 - 18)
    assert run.equity == pytest.approx([1010, 1000 + 50, 1000 + 180, 1192])


def test_slippage_is_to_the_disadvantage_of_market_and_stop_orders_and_targets_have_none(kernel: Kernel) -> None:
    stopped: list[Row] = [FLAT, FLAT, (100, 100, 90, 92)]
    trade = one(stopped, {LOSS: 5.0}, kernel, slippage=0.01)
    assert (trade.entry_price, trade.exit_price) == pytest.approx((101.0, 101 * 0.95 * 0.99))
    risen: list[Row] = [FLAT, FLAT, (100, 140, 90, 92)]
    trade = one(risen, {LOSS: 5.0}, kernel, PositionSide.SHORT, slippage=0.01)
    assert (trade.entry_price, trade.exit_price) == pytest.approx((99.0, 99 * 1.05 * 1.01))
    trade = one(risen, {GAIN: 25.0}, kernel, slippage=0.01)
    assert (trade.entry_price, trade.exit_price) == pytest.approx((101.0, 101 * 1.25))


@pytest.mark.parametrize("side", list(PositionSide))
def test_a_position_at_the_end_pays_its_exit_if_it_is_closed_there(kernel: Kernel, side: PositionSide) -> None:
    rows: list[Row] = [FLAT, FLAT, (110, 110, 110, 110)]
    costs = Setup(cash=1000.0, fee=0.01, slippage=0.02)
    valued, closed = (
        simulate(bars_of(rows), at(3, [0]), side, {}, replace(costs, closes_at_end=each), kernel)
        for each in (False, True)
    )
    (open_,), (left,) = valued.trades, closed.trades
    up = 1 if side is PositionSide.LONG else -1
    assert (open_.exit_price, left.exit_price) == pytest.approx((110, 110 * (1 - 0.02 * up)))
    assert (open_.exit_fee, left.exit_fee) == pytest.approx((0.0, left.quantity * left.exit_price * 0.01))
    assert closed.equity[-1] == pytest.approx(1000 + left.profit)
    assert closed.equity[-1] < valued.equity[-1]


def test_no_position_is_opened_after_the_cash_is_used_up(kernel: Kernel) -> None:
    rows: list[Row] = [FLAT, FLAT, (300, 300, 300, 300), (300, 300, 300, 300), FLAT, FLAT]
    run = simulate(bars_of(rows), at(6, [0, 2, 3, 4], [1]), PositionSide.SHORT, {}, FREE, kernel)
    (trade,) = run.trades
    assert (trade.entry_index, trade.exit_index) == (1, 2)
    assert trade.profit == pytest.approx(-2000)
    assert run.equity.tolist() == [1000, 1000, -1000, -1000, -1000, -1000]


def test_prices_at_the_bounds_give_finite_numbers(kernel: Kernel) -> None:
    rows: list[Row] = [(price, 1e15, 1e-15, price) for price in [1e-15, 1e-15, 1e15] * 40]
    conditions = at(120, range(0, 120, 3), range(1, 120, 3))
    run = simulate(bars_of(rows), conditions, PositionSide.LONG, {}, Setup(fee=0.0), kernel)
    assert 0 < len(run.trades) < 40
    assert np.isfinite(run.equity).all()
    assert all(np.isfinite((trade.quantity, trade.profit)).all() for trade in run.trades)


@pytest.mark.parametrize(
    "given", [{"cash": 0.0}, {"cash": float("nan")}, {"fee": -0.1}, {"fee": 1.0}, {"slippage": 1.0}]
)
def test_a_setup_that_cannot_be_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(given))):
        Setup(**given)  # type: ignore[arg-type]


def test_conditions_of_other_bars_are_refused() -> None:
    with pytest.raises(ValueError, match="3 bars, but 2 entry"):
        simulate(bars_of([FLAT] * 3), at(2, []), PositionSide.LONG, {}, FREE)


# Edges


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("stops", [{}, {LOSS: 1.0}])
def test_hardly_any_bars(count: int, stops: dict[ConditionType, float], kernel: Kernel) -> None:
    everywhere = Conditions(np.ones(count, dtype=bool), np.ones(count, dtype=bool))
    run = simulate(bars_of([FLAT] * count), everywhere, PositionSide.LONG, stops, FREE, kernel)
    assert len(run.trades) == max(0, count - 1)
    assert run.equity.tolist() == [1000.0] * count


def image(run: Run) -> bytes:
    """All bits of a run."""
    trades = run.trades
    columns = (trades.entry_index, trades.exit_index, trades.reason, trades.entry_price, trades.exit_price)
    money = (trades.quantity, trades.entry_fee, trades.exit_fee, trades.profit, run.equity)
    return b"".join(each.tobytes() for each in (*columns, *money))


@given(cases())
@settings(max_examples=EQUAL_KERNELS, deadline=None)
def test_both_kernels_return_the_same_bits_and_the_same_call_does_too(case: Case) -> None:
    first, again, other = (simulate(*case, KERNELS[name]) for name in ("numpy", "numpy", "numba"))
    assert image(first) == image(again) == image(other)
    assert list(first.trades) == list(other.trades)


def test_both_kernels_agree_on_positions_of_thousands_of_bars() -> None:
    count, chance = 20_000, np.random.default_rng(3)
    close = 100 * np.exp(np.cumsum(chance.normal(0, 0.002, count)))
    bars = bars_of(np.stack([close, close * 1.001, close * 0.999, close], axis=1).tolist())
    conditions = at(count, range(0, count, 50), [15_000])
    for side in PositionSide:
        for stops in ({}, {LOSS: 30.0}, {TRAIL: 25.0}, {GAIN: 40.0}, {LOSS: 20.0, TRAIL: 15.0, GAIN: 30.0}):
            numpy_run, numba_run = (simulate(bars, conditions, side, stops, FREE, each) for each in KERNELS.values())
            assert image(numpy_run) == image(numba_run)


def test_read_only_and_strided_columns_are_accepted(kernel: Kernel) -> None:
    rows = bars_of([FLAT, (100, 101, 94, 97)] * 6)
    strided = rows.take(slice(None, None, 2))
    for column in strided.columns():
        column.flags.writeable = False
    assert not strided.open.flags.c_contiguous
    assert len(simulate(strided, at(6, [0, 2], [1]), PositionSide.LONG, {LOSS: 1.0}, FREE, kernel).trades) == 2


def test_without_numba_the_kernel_is_that_of_numpy() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from openbell.backtest.engine import fastest\n"
        "print(fastest(stops=True).__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "openbell.backtest.kernel"


def test_numba_is_loaded_by_the_first_run_with_stops_and_not_before() -> None:
    code = (
        "import sys\n"
        "from openbell.backtest.engine import simulate\n"
        "from openbell.backtest.engine import fastest\n"
        "print(fastest(stops=False).__module__, 'numba' in sys.modules, fastest(stops=True).__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openbell.backtest.kernel", "False", "openbell.backtest.kernel_numba"]


# The reference


@given(cases())
@settings(max_examples=EQUAL_TO_THE_MATCHER, deadline=None)
def test_every_trade_is_that_of_the_matcher(case: Case) -> None:
    setup = case[-1]
    ours = list(simulate(*case).trades)
    assume(all(trade.quantity > 1e-4 for trade in ours))
    theirs = reference_trades(*case)

    places = [[(t.entry_index, t.exit_index, t.side, t.reason) for t in trades] for trades in (ours, theirs)]
    assert places[0] == places[1]
    cash, unsure = setup.cash, 1e-12
    for our, their in zip(ours, theirs, strict=True):
        # Quantities and fees of the matcher have eight decimal places: its cash differs a little more after each trade.
        after = cash + our.profit
        unsure += 1e-8 * (our.entry_price + our.exit_price + 2) / min(cash, after if after > 0 else cash)
        assert our.entry_price == pytest.approx(their.entry_price, rel=1e-8)
        assert our.exit_price == pytest.approx(their.exit_price, rel=1e-8)
        assert our.quantity == pytest.approx(their.quantity, rel=unsure)
        assert our.profit == pytest.approx(their.profit, abs=unsure * max(cash, after))
        cash = after
