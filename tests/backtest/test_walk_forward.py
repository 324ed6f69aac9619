"""Walk-forward tests: which bars each window uses, that no later bar has an effect, and when a strategy is refused."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.backtest.metrics import RunMetrics
from openbell.backtest.rules import Setup
from openbell.backtest.runs import backtest
from openbell.backtest.walk_forward import (
    FEWEST_TRADES,
    By,
    WalkForward,
    Windows,
    figure,
    usual_windows,
    walk_forward,
)
from openbell.market.bars import Bars, make
from openbell.market.errors import InsufficientData, InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.strategies.compiled import compiled
from openbell.strategies.reading import read_spec
from openbell.strategies.spec import Number
from tests.strategies.specs import crossover, walk

BARS = walk(3, 1000)
SPEC = read_spec(crossover())
COMBINATIONS: list[Mapping[str, Number]] = [
    {"smaPeriod": fast, "emaPeriod": slow} for fast in (3, 5, 12) for slow in (9, 20)
]
WINDOWS = Windows(train=300, test=100)


def image(found: WalkForward) -> bytes:
    whole = found.out_of_sample
    bits = (whole.run.equity.tobytes(), [each.tobytes() for each in whole.run.trades.columns()], whole.metrics)
    return pickle.dumps((found.windows, bits, found.in_sample_sharpe, found.degradation, found.reasons))


# Windows


def test_rolling_windows_move_and_anchored_ones_grow() -> None:
    assert Windows(train=4, test=2).over(10) == [
        (range(4), range(4, 6)),
        (range(2, 6), range(6, 8)),
        (range(4, 8), range(8, 10)),
    ]
    assert Windows(train=4, test=2, step=3, anchored=True, first=1).over(10) == [
        (range(1, 5), range(5, 7)),
        (range(1, 8), range(8, 10)),
    ]
    assert Windows(train=4, test=2).over(5) == []


def test_usual_windows_are_five_that_end_at_the_last_bar_with_a_fifth_of_each_as_the_test() -> None:
    parts = usual_windows(905).over(905)
    assert [len(train) for train, _ in parts] == [400] * 5
    assert [test for _, test in parts] == [range(at, at + 100) for at in (405, 505, 605, 705, 805)]
    grown = usual_windows(905, anchored=True).over(905)
    assert [len(train) for train, _ in grown] == [400, 500, 600, 700, 800]


@settings(deadline=None)
@given(
    count=st.integers(0, 3000),
    first=st.integers(0, 500),
    windows=st.integers(1, 12),
    share=st.floats(0.05, 0.9),
    anchored=st.booleans(),
)
def test_usual_windows_are_as_many_as_wanted_or_refused(
    count: int, first: int, windows: int, share: float, anchored: bool
) -> None:
    try:
        found = usual_windows(count, windows, share, anchored=anchored, first=first)
    except InvalidParameter:
        return
    parts = found.over(count)
    assert len(parts) == windows
    assert parts[-1][1].stop == count
    assert min(train.start for train, _ in parts) >= first
    for train, test in parts:
        assert train.stop == test.start
    tested = [bar for _, test in parts for bar in test]
    assert tested == list(range(tested[0], count))


@pytest.mark.parametrize("wrong", [{"train": 1}, {"test": 1}, {"first": -1}, {"step": 9}, {"step": 0}], ids=str)
def test_impossible_windows_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        Windows(**{"train": 20, "test": 10, **wrong})  # type: ignore[arg-type]
    for count, windows, share in ((1000, 0, 0.2), (1000, 5, 0.0), (1000, 5, 1.0), (10, 5, 0.2)):
        with pytest.raises(InvalidParameter):
            usual_windows(count, windows, share)


CLOSED = Setup(closes_at_end=True)
"""Each part pays the exit of its last position."""


# Choice and test


def test_each_window_trades_the_best_of_its_training_part() -> None:
    found = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS)
    assert len(found.windows) == 7
    times = np.append(BARS.time, inf)
    for window in found.windows:
        tried: list[RunMetrics] = []
        for each in COMBINATIONS:
            start, end = times[window.train.start], times[window.train.stop]
            tried.append(backtest(compiled(SPEC, each), BARS, CLOSED, start, end).metrics)
        sharpes = [each.sharpe or -inf for each in tried]
        best = int(np.argmax(sharpes))
        assert window.parameters == COMBINATIONS[best]
        assert window.in_sample == tried[best]
        start, end = times[window.test.start], times[window.test.stop]
        alone = backtest(compiled(SPEC, window.parameters), BARS, CLOSED, start, end)
        assert window.out_of_sample == alone.metrics
    assert len({tuple(each.parameters.items()) for each in found.windows}) > 1, "the choice differs between windows"


@pytest.mark.parametrize("by", By)
def test_the_figure_to_choose_by_is_maximised(by: By) -> None:
    found = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), Windows(500, 500), by=by)
    tried = [backtest(compiled(SPEC, each), BARS, CLOSED, end=float(BARS.time[500])).metrics for each in COMBINATIONS]
    assert figure(found.windows[0].in_sample, by) == max(figure(each, by) for each in tried)


def test_of_equal_combinations_the_first_is_chosen_and_undefined_ones_are_the_worst() -> None:
    # No combination trades on prices that do not move: all Sharpes are undefined.
    flat = np.full(200, 100.0)
    bars = make(parse("BTC/USD"), Timeframe.H1, BARS.time[:200], flat, flat, flat, flat, flat)
    found = walk_forward(SPEC, bars, COMBINATIONS, Setup(), Windows(100, 100))
    assert found.windows[0].parameters == COMBINATIONS[0]
    assert (found.in_sample_sharpe, found.degradation, found.out_of_sample_sharpe) == (0.0, None, None)
    assert not found.passed


def test_the_test_parts_are_joined_by_hand() -> None:
    """Two windows: the second continues with the cash of the first, and its trades move with its bars."""
    found = walk_forward(SPEC, BARS, COMBINATIONS[:1], Setup(cash=1000.0), Windows(600, 200))
    times = BARS.time.astype(float)
    one = backtest(compiled(SPEC, COMBINATIONS[0]), BARS, replace(CLOSED, cash=1000.0), times[600], times[800])
    other = backtest(compiled(SPEC, COMBINATIONS[0]), BARS, replace(CLOSED, cash=1000.0), times[800])
    growth = one.run.equity[-1] / 1000.0
    whole = found.out_of_sample
    assert whole.bars.same_as(BARS.take(slice(600, 1000)))
    assert whole.run.equity == pytest.approx([*one.run.equity, *(other.run.equity * growth)], rel=1e-12)
    trades = [*one.run.trades, *other.run.trades]
    assert [each.entry_price for each in whole.run.trades] == [each.entry_price for each in trades]
    assert [each.entry_index for each in whole.run.trades] == [
        *(each.entry_index for each in one.run.trades),
        *(each.entry_index + 200 for each in other.run.trades),
    ]
    profits = [each.profit for each in whole.run.trades]
    assert profits == pytest.approx(
        [*(each.profit for each in one.run.trades), *(each.profit * growth for each in other.run.trades)]
    )
    assert whole.metrics.trades == len(trades)
    assert whole.metrics.total_return == pytest.approx(
        (1 + (one.metrics.total_return or 0)) * (1 + (other.metrics.total_return or 0)) - 1
    )
    returns = np.diff(whole.run.equity, prepend=1000.0) / np.append(1000.0, whole.run.equity[:-1])
    assert found.out_of_sample_sharpe == pytest.approx(returns.mean() / returns.std(ddof=1) * sqrt(365 * 24), rel=1e-9)
    assert found.in_sample_sharpe == pytest.approx(np.mean([each.in_sample.sharpe or 0.0 for each in found.windows]))


def test_bars_between_test_parts_are_not_traded() -> None:
    found = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), Windows(300, 100, step=250))
    assert [each.test for each in found.windows] == [range(300, 400), range(550, 650), range(800, 900)]
    expected = np.concatenate((BARS.time[300:400], BARS.time[550:650], BARS.time[800:900]))
    assert found.out_of_sample.bars.time.tolist() == expected.tolist()


def short_and_hold() -> dict[str, Any]:
    raw = crossover()
    raw["side"] = "SHORT"
    raw["exitConditions"] = [{"type": "UNDER", "indicator": "close", "params": {"value": "${floor}"}}]
    raw["parameters"].append({"name": "floor", "type": "DOUBLE", "min": 0.001, "max": 1, "defaultValue": 0.01})
    return raw


def test_after_the_cash_is_used_up_nothing_is_traded() -> None:
    # The price multiplies in the first test part: a short loses more than the cash.
    factor = np.where(np.arange(1000) >= 380, 50.0, 1.0)
    prices = {name: getattr(BARS, name) * factor for name in ("open", "high", "low", "close")}
    found = walk_forward(read_spec(short_and_hold()), replace(BARS, **prices), [{}], Setup(), WINDOWS)
    whole = found.out_of_sample
    assert whole.run.equity[99] < 0
    assert set(whole.run.equity[100:]) == {whole.run.equity[99]}
    assert max(each.exit_index for each in whole.run.trades) < 100
    assert found.out_of_sample_sharpe is None
    assert any("not more than 0" in reason for reason in found.reasons)


# Nothing later has an effect


@pytest.mark.parametrize("anchored", [False, True], ids=["rolling", "anchored"])
def test_cutting_the_bars_after_a_window_changes_nothing_in_it(anchored: bool) -> None:
    windows = Windows(300, 100, anchored=anchored)
    whole = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), windows)
    for count in range(1, 8):
        last = 300 + 100 * count
        cut = walk_forward(SPEC, BARS.take(slice(0, last)), COMBINATIONS, Setup(), windows)
        assert cut.windows == whole.windows[:count]
        bits = whole.out_of_sample.run.equity[: 100 * count].tobytes()
        assert cut.out_of_sample.run.equity.tobytes() == bits


def test_the_choice_of_a_window_does_not_depend_on_its_test_part() -> None:
    whole = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS)
    for count, window in enumerate(whole.windows):
        changed = BARS.close.copy()
        changed[window.test.start :] = changed[window.test.start :][::-1]
        low, high = np.minimum(BARS.low, changed), np.maximum(BARS.high, changed)
        other = walk_forward(SPEC, replace(BARS, close=changed, low=low, high=high), COMBINATIONS, Setup(), WINDOWS)
        assert other.windows[:count] == whole.windows[:count]
        assert other.windows[count].parameters == window.parameters
        assert other.windows[count].in_sample == window.in_sample


def test_earlier_bars_warm_up_and_are_not_traded() -> None:
    windows = Windows(300, 100, first=100)
    found = walk_forward(SPEC, BARS, COMBINATIONS, Setup(), windows)
    assert found.windows[0].train == range(100, 400)
    assert image(found) != image(walk_forward(SPEC, BARS.take(slice(100, None)), COMBINATIONS, Setup(), WINDOWS))


def test_the_same_call_gives_the_same_bytes() -> None:
    assert image(walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS)) == image(
        walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS)
    )


# The verdict


def waves(count: int, seed: int = 0) -> Bars:
    """Prices that swing with a period of 40 bars, with noise: a crossover earns in all of them."""
    chance = np.random.default_rng(seed)
    close = 100 * np.exp(0.1 * np.sin(np.arange(count) * 2 * np.pi / 40) + chance.normal(0, 0.002, count))
    opened = np.append(close[0], close[:-1])
    times = BARS.time[0] + 3600 * np.arange(count)
    low, high = np.minimum(opened, close), np.maximum(opened, close)
    return make(parse("BTC/USD"), Timeframe.H1, times, opened, high, low, close, np.ones(count))


FOLLOWS = [{"smaPeriod": 3, "emaPeriod": 9}]


def test_a_strategy_that_earns_in_all_parts_passes() -> None:
    found = walk_forward(SPEC, waves(2000), FOLLOWS, Setup(), usual_windows(2000))
    assert found.reasons == ()
    assert found.passed
    assert found.degradation is not None
    assert found.degradation < 0.5
    assert found.out_of_sample.metrics.trades >= FEWEST_TRADES


def test_one_that_loses_out_of_sample_is_refused() -> None:
    bars = waves(1200)
    # The trend of the training part ends with it: then each bar turns back what the one before did.
    noise = np.where(np.arange(1200) % 12 < 6, 1.0, 0.98)
    close = np.where(np.arange(1200) < 600, bars.close, bars.close[600] * noise)
    opened = np.append(close[0], close[:-1])
    bars = replace(bars, open=opened, close=close, low=np.minimum(opened, close), high=np.maximum(opened, close))
    found = walk_forward(SPEC, bars, FOLLOWS, Setup(), Windows(600, 600))
    assert found.in_sample_sharpe > 0
    assert found.degradation is not None
    assert found.degradation > 1
    assert found.reasons == (f"its walk-forward Sharpe is {found.out_of_sample_sharpe:.2f}, which is not more than 0",)


def test_one_whose_sharpe_falls_by_more_than_half_is_refused() -> None:
    good, noisy = waves(600), waves(600, seed=1)
    chance = np.random.default_rng(7)
    close = np.append(good.close, noisy.close * np.exp(np.cumsum(chance.normal(0, 0.02, 600))))
    opened = np.append(close[0], close[:-1])
    low, high = np.minimum(opened, close), np.maximum(opened, close)
    times = BARS.time[0] + 3600 * np.arange(1200)
    bars = make(parse("BTC/USD"), Timeframe.H1, times, opened, high, low, close, np.ones(1200))
    found = walk_forward(SPEC, bars, FOLLOWS, Setup(fee=0.0), Windows(600, 600))
    assert 0 < (found.out_of_sample_sharpe or 0) < found.in_sample_sharpe / 2
    assert len(found.reasons) == 1
    assert f"less than half of the {found.in_sample_sharpe:.2f} of its training parts" in found.reasons[0]


def test_one_with_too_few_trades_is_refused() -> None:
    found = walk_forward(SPEC, waves(400), FOLLOWS, Setup(), Windows(200, 200))
    assert 0 < found.out_of_sample.metrics.trades < FEWEST_TRADES
    assert any(f"{FEWEST_TRADES} are needed" in reason for reason in found.reasons)


# Refusals and progress


def test_what_cannot_run_is_refused_before_any_work() -> None:
    with pytest.raises(InvalidParameter, match="at least one combination"):
        walk_forward(SPEC, BARS, [], Setup(), WINDOWS)
    with pytest.raises(InvalidParameter, match="no parameter"):
        walk_forward(SPEC, BARS, [*COMBINATIONS, {"nothing": 1}], Setup(), WINDOWS)
    with pytest.raises(InsufficientData, match="399 closed bars, 400 needed"):
        walk_forward(SPEC, BARS.take(slice(0, 399)), COMBINATIONS, Setup(), WINDOWS)


def test_progress_is_reported_after_each_run_and_can_stop_the_work() -> None:
    seen: list[tuple[int, int]] = []
    walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS, progress=lambda *each: seen.append(each))
    assert seen == [(done, 55) for done in range(1, 56)]

    def stop(done: int, _total: int) -> None:
        if done == 5:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        walk_forward(SPEC, BARS, COMBINATIONS, Setup(), WINDOWS, progress=stop)
