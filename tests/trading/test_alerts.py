"""Alerts: which bars fire them, and which do not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.indicators.channels import Signal
from openbell.indicators.registry import all_indicators
from openbell.market.bars import Bars, make, resample
from openbell.market.clock import parse_time
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.timeframes import Timeframe
from openbell.trading.alerts import (
    Alert,
    AlertFilter,
    Firing,
    Type,
    notification,
    price_firings,
    registered,
    signal_firings,
)
from tests.trading.samples import START, D, look, minutes


def alert(kind: Type = Type.PRICE_ABOVE, set_at: float = START, alert_id: str = "a", **changes: Any) -> Alert:
    wanted: dict[str, Any] = {"threshold": D(100)} if kind.of_price else {"indicator": "rsi", "signal": "rsi_oversold"}
    wanted |= changes
    symbol = wanted.pop("symbol", "BTC/USD")
    return Alert(alert_id, "me", symbol, "BTCUSD", "1m", kind, set_at, **wanted)


def bars_of(lows: list[float], highs: list[float], timeframe: Timeframe = Timeframe.M1) -> Bars:
    times = [START + timeframe.seconds * number for number in range(len(lows))]
    return make(parse("BTC/USD"), timeframe, times, lows, highs, lows, highs, [1.0] * len(lows))


RISING = bars_of([90, 95, 97, 101], [95, 97, 100, 105])


def only(firings: list[Firing]) -> tuple[Any, ...]:
    assert len(firings) == 1
    return look(firings[0], "index value at")


def test_a_price_alert_fires_on_the_first_bar_that_reaches_it() -> None:
    assert only(price_firings([alert()], RISING, 0)) == (2, 100.0, START + 180.0)
    assert only(price_firings([alert(threshold=D("100.01"))], RISING, 0)) == (3, 105.0, START + 240.0)
    assert price_firings([alert(threshold=D("105.01"))], RISING, 0) == []
    below = alert(Type.PRICE_BELOW, threshold=D(95))
    assert only(price_firings([below], bars_of([97, 95, 80], [99, 98, 99]), 0)) == (1, 95.0, START + 120.0)
    assert price_firings([alert(Type.PRICE_BELOW, threshold=D("89.99"))], RISING, 0) == []


def test_a_condition_that_is_true_already_fires_on_the_first_bar() -> None:
    assert only(price_firings([alert(threshold=D(1))], RISING, 0)) == (0, 95.0, START + 60.0)
    assert only(price_firings([alert(Type.PRICE_BELOW, threshold=D(500))], RISING, 0)) == (0, 90.0, START + 60.0)


@pytest.mark.parametrize(
    ("set_at", "index"), [(-100, 0), (0, 0), (0.001, 1), (60, 1), (60.5, 2), (180, 3), (180.5, None)]
)
def test_no_bar_that_opened_before_an_alert_was_set_fires_it(set_at: float, index: int | None) -> None:
    found = price_firings([alert(set_at=START + set_at, threshold=D(1))], RISING, 0)
    assert [each.index for each in found] == ([] if index is None else [index])


def test_a_bar_that_was_checked_already_does_not_fire_again() -> None:
    assert only(price_firings([alert(threshold=D(1))], RISING, START + 120))[0] == 2
    assert only(price_firings([alert(threshold=D(1), set_at=START + 150)], RISING, START + 120))[0] == 3


def test_several_alerts_fire_each_for_itself() -> None:
    found = price_firings(
        [alert(), alert(alert_id="b", threshold=D(999)), alert(alert_id="c", threshold=D(96))], RISING, 0
    )
    assert [(each.alert.id, each.index) for each in found] == [("a", 2), ("c", 1)]
    assert price_firings([alert()], RISING.take(slice(0, 0)), 0) == []


@pytest.mark.parametrize(
    "timeframe", [Timeframe.M5, Timeframe.M15, Timeframe.H1, Timeframe.H4, Timeframe.D1, Timeframe.W1]
)
def test_at_larger_timeframes_the_whole_bar_must_have_opened_after(timeframe: Timeframe) -> None:
    monday = int(parse_time("2025-09-01"))
    assert monday == START
    bars = bars_of([90] * 3, [110] * 3, timeframe)
    assert only(price_firings([alert()], bars, 0)) == (0, 110.0, float(START + timeframe.seconds))
    late = alert(set_at=START + 1)
    assert only(price_firings([late], bars, 0)) == (1, 110.0, float(START + 2 * timeframe.seconds))


def test_a_days_alert_on_a_stock_is_known_at_the_sessions_close() -> None:
    opened, closed = int(parse_time("2025-11-28T14:30:00Z")), parse_time("2025-11-28T18:00:00Z")
    day = resample(minutes([(100.0, 101.0, 99.0, 1.0)], "AAPL", opened + 600), Timeframe.D1, 4e9)
    assert day.time.tolist() == [opened]
    assert only(price_firings([alert(set_at=opened - 60)], day, 0)) == (0, 101.0, closed)
    assert price_firings([alert(set_at=opened + 1)], day, 0) == []


prices = st.integers(90, 110).map(float)


@given(st.lists(prices, min_size=1, max_size=12), st.data())
@settings(deadline=None, max_examples=150)
def test_a_price_alert_is_the_first_match_of_a_plain_search(highs: list[float], data: st.DataObject) -> None:
    lows = [data.draw(st.integers(80, int(high)).map(float)) for high in highs]
    kind = data.draw(st.sampled_from([Type.PRICE_ABOVE, Type.PRICE_BELOW]))
    level, set_at, since = data.draw(prices), data.draw(st.integers(-90, 800)), data.draw(st.integers(-90, 800))
    expected = None
    for number, (low, high) in enumerate(zip(lows, highs, strict=True)):
        reached = high >= level if kind is Type.PRICE_ABOVE else low <= level
        if reached and 60 * number >= set_at and 60 * (number + 1) > since and expected is None:
            expected = number
    one = alert(kind, START + set_at, threshold=Decimal(level))
    found = price_firings([one], bars_of(lows, highs), START + since)
    assert [each.index for each in found] == ([] if expected is None else [expected])


# Signals

SIGNALS = (Signal(2, 25.0, "rsi_oversold"), Signal(0, 29.0, "rsi_oversold"), Signal(1, 75.0, "rsi_overbought"))
WAITING = Type.INDICATOR_SIGNAL


def test_a_signal_alert_fires_by_its_first_signal_whose_bar_closes_after_it_was_set() -> None:
    assert only(signal_firings([alert(WAITING, START - 1)], RISING, SIGNALS, 0)) == (0, 29.0, START + 60.0)
    assert only(signal_firings([alert(WAITING, START + 59.9)], RISING, SIGNALS, 0)) == (0, 29.0, START + 60.0)
    assert only(signal_firings([alert(WAITING, START + 60)], RISING, SIGNALS, 0)) == (2, 25.0, START + 180.0)
    assert only(signal_firings([alert(WAITING, START, signal="rsi_overbought")], RISING, SIGNALS, 0))[0] == 1


def test_signals_that_a_chart_still_shows_never_fire_a_later_alert() -> None:
    assert signal_firings([alert(WAITING, START + 180)], RISING, SIGNALS, 0) == []
    assert signal_firings([alert(WAITING, START + 1e6)], RISING, SIGNALS, 0) == []
    assert signal_firings([alert(WAITING, signal="buy")], RISING, SIGNALS, 0) == []
    assert signal_firings([alert(WAITING)], RISING.take(slice(0, 0)), (), 0) == []


def test_signals_of_bars_that_were_checked_already_do_not_fire() -> None:
    assert only(signal_firings([alert(WAITING)], RISING, SIGNALS, START + 60))[0] == 2
    assert signal_firings([alert(WAITING)], RISING, SIGNALS, START + 180) == []


def test_a_signal_of_a_larger_bar_counts_when_the_bar_closes() -> None:
    bars = bars_of([90] * 3, [110] * 3, Timeframe.H4)
    signals = (Signal(1, 1.0, "rsi_oversold"),)
    assert only(signal_firings([alert(WAITING, START + 8 * 3600 - 1)], bars, signals, 0)) == (1, 1.0, START + 28800.0)
    assert signal_firings([alert(WAITING, START + 8 * 3600)], bars, signals, 0) == []


def test_only_signals_that_an_indicator_has_are_accepted() -> None:
    for indicator in all_indicators().values():
        for label in indicator.labels:
            for name in (indicator.name, *indicator.aliases):
                assert registered(name, label) == indicator.name
        with pytest.raises(InvalidParameter, match=f"{indicator.name} has no signal 'nonsense'; it has "):
            registered(indicator.name, "nonsense")
    assert registered("wt", "cross_up") == "wavetrend"
    with pytest.raises(InvalidParameter, match=r"it has rsi_overbought, rsi_oversold$"):
        registered("rsi", "cross_up")
    with pytest.raises(InvalidParameter, match=r"it has none$"):
        registered("ma", "buy")
    with pytest.raises(InvalidParameter, match="no indicator 'rsj'; did you mean 'rsi'"):
        registered("rsj", "rsi_oversold")
    with pytest.raises(InvalidParameter) as caught:
        registered("rsi", "x" * 5000)
    assert len(caught.value.message) < 200


# Notifications


def test_a_filter_passes_the_alerts_it_names_and_an_empty_one_passes_all() -> None:
    above, signal = alert(), alert(WAITING, symbol="AAPL")
    both = (above, signal)
    assert [AlertFilter().takes(each) for each in both] == [True, True]
    assert [AlertFilter(symbols=frozenset({"AAPL"})).takes(each) for each in both] == [False, True]
    assert [AlertFilter(alert_types=frozenset({"price_above"})).takes(each) for each in both] == [True, False]
    crossed = AlertFilter(frozenset({"AAPL"}), frozenset({"price_above"}))
    assert [crossed.takes(each) for each in both] == [False, False]


def test_a_notification_has_the_callers_spelling_of_the_symbol() -> None:
    found = price_firings([alert()], RISING, 0)[0]
    assert notification(found, "2025-09-01T00:03:00Z") == {
        "alert_id": "a",
        "symbol": "BTCUSD",
        "interval": "1m",
        "condition": {"type": "price_above", "threshold": 100.0},
        "value": 100.0,
        "triggered_at": "2025-09-01T00:03:00Z",
    }
    assert alert(WAITING).condition == {"type": "indicator_signal", "indicator": "rsi", "signal": "rsi_oversold"}
    assert np.isfinite(found.value)
