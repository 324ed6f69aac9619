"""The nine crossings, compared with the contract's formulas."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import TypedDict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.signals.crossings import NEEDED, SignalCrossings, SignalSnapshot, find_crossings

CONTRACT = [
    "macd_cross_up",
    "macd_cross_dn",
    "ema_support_lost",
    "ema_reclaim",
    "rsi_overbought",
    "rsi_oversold",
    "bb_squeeze",
    "bb_breakout_up",
    "bb_breakout_dn",
]


class Numbers(TypedDict):
    """A snapshot with the contract's names."""

    close: float
    ema9: float
    macd: float
    signal: float
    rsi: float
    bb_upper: float
    bb_middle: float
    bb_lower: float


def by_contract(prev: Numbers, last: Numbers) -> dict[str, bool]:
    """The formulas of the contract's section 3."""
    return {
        "macd_cross_up": prev["macd"] <= prev["signal"] and last["macd"] > last["signal"],
        "macd_cross_dn": prev["macd"] >= prev["signal"] and last["macd"] < last["signal"],
        "rsi_overbought": last["rsi"] >= 70,
        "rsi_oversold": last["rsi"] <= 30,
        "ema_support_lost": prev["close"] >= prev["ema9"] and last["close"] < last["ema9"],
        "ema_reclaim": prev["close"] <= prev["ema9"] and last["close"] > last["ema9"],
        "bb_squeeze": (last["bb_upper"] - last["bb_lower"]) / last["bb_middle"] < 0.04,
        "bb_breakout_up": last["close"] > last["bb_upper"],
        "bb_breakout_dn": last["close"] < last["bb_lower"],
    }


def snapshot(numbers: Numbers, time: int = 0) -> SignalSnapshot:
    return SignalSnapshot(
        price=numbers["close"],
        ema9=numbers["ema9"],
        ma10=numbers["ema9"],
        macd=numbers["macd"],
        signal=numbers["signal"],
        hist=numbers["macd"] - numbers["signal"],
        rsi=numbers["rsi"],
        bb_upper=numbers["bb_upper"],
        bb_middle=numbers["bb_middle"],
        bb_lower=numbers["bb_lower"],
        volume=1.0,
        vwap=None,
        time=time,
    )


# Few values, so that equalities come up as often as differences.
level = st.sampled_from([98.0, 99.0, 100.0, 100.0 + 1e-12, 101.0, 102.0, 104.0])
small = st.sampled_from([-1.0, -1e-15, -0.0, 0.0, 1e-15, 0.5, 1.0])
strength = st.sampled_from([0.0, 29.999999999999996, 30.0, 30.000000000000004, 50.0, 69.99999999999999, 70.0, 100.0])
few: st.SearchStrategy[Numbers] = st.builds(
    Numbers,
    close=level,
    ema9=level,
    macd=small,
    signal=small,
    rsi=strength,
    bb_upper=level,
    bb_middle=level,
    bb_lower=level,
)
price = st.floats(1e-8, 1e9)
many: st.SearchStrategy[Numbers] = st.builds(
    Numbers,
    close=price,
    ema9=price,
    macd=st.floats(-1e3, 1e3),
    signal=st.floats(-1e3, 1e3),
    rsi=st.floats(0, 100),
    bb_upper=price,
    bb_middle=price,
    bb_lower=price,
)

calm = Numbers(close=100.0, ema9=100.0, macd=0.0, signal=0.0, rsi=50.0, bb_upper=110.0, bb_middle=100.0, bb_lower=90.0)
with_last = partial(replace, snapshot(calm))


@given(st.one_of(few, many), st.one_of(few, many))
@settings(deadline=None, max_examples=600)
@example(calm, calm)
def test_exactly_the_contracts_formulas(prev: Numbers, last: Numbers) -> None:
    assert find_crossings(snapshot(prev), snapshot(last)).table() == by_contract(prev, last)


@given(few, few)
@settings(deadline=None, max_examples=200)
def test_opposite_crossings_exclude_each_other(prev: Numbers, last: Numbers) -> None:
    found = find_crossings(snapshot(prev), snapshot(last))

    assert not (found.macd_cross_up and found.macd_cross_dn)
    assert not (found.ema_support_lost and found.ema_reclaim)
    assert not (found.rsi_overbought and found.rsi_oversold)


@pytest.mark.parametrize(
    ("rsi", "expected"),
    [
        (70.0, ["rsi_overbought"]),
        (69.99999999999999, []),
        (30.0, ["rsi_oversold"]),
        (30.000000000000004, []),
    ],
)
def test_the_rsi_levels_are_inclusive(rsi: float, expected: list[str]) -> None:
    assert find_crossings(snapshot(calm), with_last(rsi=rsi)).true() == expected


def test_a_cross_may_begin_on_the_line_but_not_end_on_it() -> None:
    on, above, below = with_last(), with_last(macd=1.0, price=101.0), with_last(macd=-1.0, price=99.0)

    assert find_crossings(on, above).true() == ["macd_cross_up", "ema_reclaim"]
    assert find_crossings(on, below).true() == ["macd_cross_dn", "ema_support_lost"]
    assert find_crossings(above, on).true() == []
    assert find_crossings(below, on).true() == []
    assert find_crossings(above, above).true() == []


def test_the_squeeze_is_strict_and_a_breakout_is_beyond_the_band() -> None:
    assert not find_crossings(snapshot(calm), with_last(bb_upper=102.0, bb_lower=98.0)).bb_squeeze
    assert find_crossings(snapshot(calm), with_last(bb_upper=102.0, bb_lower=98.01)).bb_squeeze
    assert find_crossings(snapshot(calm), with_last(price=110.0)).true() == ["ema_reclaim"]
    assert find_crossings(snapshot(calm), with_last(price=110.1)).true() == ["ema_reclaim", "bb_breakout_up"]
    assert find_crossings(snapshot(calm), with_last(price=90.0)).true() == ["ema_support_lost"]
    assert find_crossings(snapshot(calm), with_last(price=89.9)).true() == ["ema_support_lost", "bb_breakout_dn"]


def test_the_table_has_the_contracts_names_in_its_order() -> None:
    assert [field.name for field in fields(SignalCrossings)] == CONTRACT
    assert list(SignalCrossings(*[False] * 9).table()) == CONTRACT
    assert SignalCrossings(*[True] * 9).true() == CONTRACT
    assert SignalCrossings(*[False] * 9).true() == []


def test_values_are_python_booleans() -> None:
    """JSON cannot encode numpy's."""
    assert all(type(value) is bool for value in find_crossings(snapshot(calm), snapshot(calm)).table().values())


def test_the_contract_needs_35_bars() -> None:
    assert NEEDED == 35
