"""Crossings of lines, against a loop over all bars, and what indicators declare about theirs."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openbell.charts.comparisons import MOST_AVERAGES, Crossing, crossings, last_cross
from openbell.indicators.evaluation import Computed, evaluate, parse_requests
from openbell.indicators.registry import all_indicators, get
from openbell.market.bars import Bars, Values, make
from openbell.market.timeframes import Timeframe
from tests.indicators.test_every_indicator import crypto_bars, stock_bars
from tests.market.walks import CRYPTO, at

SHOWN = 100


def bars_of(closes: list[float]) -> Bars:
    """Hourly bars with these closes."""
    close = np.array(closes)
    time = at("2025-01-01T00:00Z") + 3600 * np.arange(len(close))
    flat = np.ones(len(close))
    return make(CRYPTO, Timeframe.H1, time, close, close, close, close, flat)


def computed(bars: Bars, *entries: str | dict[str, object], shown: int = SHOWN) -> list[Computed]:
    return evaluate(bars, shown, parse_requests(entries), {}, None)


def by_names(bars: Bars, *entries: str | dict[str, object], shown: int = SHOWN) -> dict[tuple[str, str], Crossing]:
    found = crossings(bars, min(shown, len(bars)), computed(bars, *entries, shown=shown))
    return {(each.line, each.other): each for each in found.found}


def slow_average(close: Values, length: int) -> list[float]:
    """The simple average at each bar, added up anew."""
    return [
        sum(close[index - length + 1 : index + 1].tolist()) / length if index + 1 >= length else float("nan")
        for index in range(len(close))
    ]


def slow_last_cross(one: list[float], two: list[float]) -> tuple[int | None, int]:
    """The last bar at which `one` is on the other side of `two` than when they last differed, bar by bar."""
    side, last, direction = 0, None, 0
    for index, (first, second) in enumerate(zip(one, two, strict=True)):
        if isnan(first) or isnan(second) or abs(first - second) < 1e-9:
            continue
        now = 1 if first > second else -1
        if side and now != side:
            last, direction = index, now
        side = now
    return last, direction


@given(st.lists(st.integers(9000, 11000), min_size=30, max_size=160), st.integers(1, 6), st.integers(1, 12))
def test_crosses_of_averages_are_those_of_a_loop_over_all_bars(closes: list[int], fast: int, more: int) -> None:
    """Averages of whole cents: those that are equal in decimals count as equal."""
    bars = bars_of([cents / 100 for cents in closes])
    slow = fast + more
    found = by_names(bars, {"name": "sma", "length": fast}, {"name": "sma", "length": slow}, shown=10)
    lines = {
        "close": bars.close.tolist(),
        f"SMA({fast})": slow_average(bars.close, fast),
        f"SMA({slow})": slow_average(bars.close, slow),
    }
    assert set(found) == {("close", f"SMA({fast})"), ("close", f"SMA({slow})"), (f"SMA({fast})", f"SMA({slow})")}
    for (one, two), crossing in found.items():
        assert (crossing.last, crossing.direction) == slow_last_cross(lines[one], lines[two])
        apart = lines[one][-1] - lines[two][-1]
        assert crossing.side == (0 if abs(apart) < 1e-9 else 1 if apart > 0 else -1)


@given(st.lists(st.sampled_from([-1, 0, 1])))
def test_the_last_cross_ignores_touches_and_mirrors(sides: list[int]) -> None:
    column = np.array(sides, np.int64)
    found, mirrored = last_cross(column), last_cross(-column)
    apart = [side for side in sides if side]
    assert (found is None) == (len(set(apart)) < 2)
    if found:
        index, side = found
        assert mirrored == (index, -side)
        assert sides[index] == side
        assert -side in sides[:index]
        assert -side not in sides[index:]


def test_a_touch_is_no_cross_and_equal_lines_are_equal() -> None:
    # The average of one bar is the close itself; that of two bars is the close wherever it repeats.
    bars = bars_of([10.0, 12.0, 12.0, 14.0, 14.0])
    found = by_names(bars, {"name": "sma", "length": 2})[("close", "SMA(2)")]
    assert (found.side, found.last, found.direction, found.since) == (0, None, 0, 1)


def test_an_old_cross_before_the_bars_shown_is_found() -> None:
    bars = bars_of([100.0] * 50 + [90.0] + [110.0 + number for number in range(300)])
    found = by_names(bars, {"name": "sma", "length": 10})[("close", "SMA(10)")]
    assert (found.last, found.direction, found.side) == (51, 1, 1)


def test_without_a_cross_the_first_bar_looked_at_is_named() -> None:
    rising = bars_of([100.0 + number for number in range(400)])
    found = by_names(rising, {"name": "sma", "length": 10}, {"name": "ema_line", "length": 20}, "macd")
    assert found[("close", "SMA(10)")].since == 9
    assert found[("close", "EMA(20)")].since == 239
    assert found[("MACD(12,26,9) MACD", "MACD(12,26,9) Signal")].since == 300
    assert {each.last for each in found.values()} == {None}


def test_more_averages_than_six_are_compared_with_the_close_alone() -> None:
    entries: list[str | dict[str, object]] = [{"name": "sma", "length": length} for length in range(2, 10)]
    bars = crypto_bars()
    found = crossings(bars, SHOWN, computed(bars, *entries))
    assert sum(each.line == "close" for each in found.found) == 8
    assert sum(each.line != "close" for each in found.found) == MOST_AVERAGES * (MOST_AVERAGES - 1) // 2
    assert found.note == "SMA(8), SMA(9): compared with the close only, not with other averages"


def test_one_average_asked_for_twice_is_one_line() -> None:
    assert set(by_names(crypto_bars(), "sma", "sma")) == {("close", "SMA(10)")}


def test_lines_that_are_no_averages_do_not_cross_the_close() -> None:
    assert by_names(stock_bars(), "bbands", "supertrend", "sar", "rsi", "zigzag", "volume_profile") == {}


def test_a_flat_price_crosses_nothing() -> None:
    """Rounding in the averages of one price is not a cross."""
    names = [name for name, each in all_indicators().items() if each.crosses]
    averages = ["sma", "ema_line", "wma", "hma", "vwma", "linreg"]
    flat = bars_of([0.1] * 1200)
    found = by_names(flat, *names) | by_names(flat, *averages)
    assert len(found) == len(names) + 6 + 15
    assert {(each.side, each.last) for each in found.values()} == {(0, None)}


def test_declared_pairs_are_lines_of_the_indicator() -> None:
    declared = {name: each for name, each in all_indicators().items() if each.crosses}
    assert {"macd", "ppo", "trix", "kst", "stoch", "stoch_rsi", "wavetrend", "ichimoku", "adx"} <= set(declared)
    for name, indicator in declared.items():
        lines = {line.label for line in indicator.run(crypto_bars()).lines}
        for pair in indicator.crosses:
            assert {pair.line, pair.other} <= lines, name


def test_every_signal_line_is_declared() -> None:
    """An indicator with a line that is called its signal or trigger has a pair with that line."""
    for name, indicator in all_indicators().items():
        if indicator.needs or indicator.profile:
            continue
        labels = {line.label for line in indicator.run(crypto_bars()).lines}
        for label in labels & {"Signal", "Trigger", "D"}:
            assert label in {pair.other for pair in indicator.crosses}, name


@pytest.mark.parametrize("name", [name for name, each in all_indicators().items() if each.settles < 24])
def test_values_do_not_depend_on_bars_before_those_declared(name: str) -> None:
    """Computed on the declared number of bars alone, the newest value is that of all bars to 1e-10 of the price."""
    indicator, bars = get(name), crypto_bars()
    count = indicator.settles * indicator.warmup(**indicator.settings())
    whole = indicator.run(bars).lines
    for end in (count + 1, count + 57, len(bars)):
        part = indicator.run(bars.take(slice(end - count, end)))
        for line, short in zip(whole, part.lines, strict=True):
            if line.label in indicator.displaced:
                continue
            expected = float(line.values[end - 1])
            assert float(short.values[-1]) == pytest.approx(expected, rel=1e-10, abs=1e-9), (line.label, end)
