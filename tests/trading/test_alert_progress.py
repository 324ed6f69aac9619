"""Why an active alert has not fired, and how far the price is from its threshold."""

from __future__ import annotations

import pytest

from openbell.market.clock import parse_time
from openbell.trading.alerts import LastPrice, Type, progress_of
from tests.trading.samples import START, D
from tests.trading.test_alerts import alert

LATER = int(START) + 600
SATURDAY = parse_time("2026-11-14T12:00:00Z")


@pytest.mark.parametrize(
    ("kind", "threshold", "price", "end", "reason", "distance"),
    [
        (Type.PRICE_ABOVE, "100", "90.5", LATER, "the price must rise by 9.5 from 90.5", "9.5"),
        (Type.PRICE_BELOW, "80", "90", LATER, "the price must fall by 10 from 90", "-10"),
        (
            Type.PRICE_ABOVE,
            "100",
            "101",
            LATER,
            "the last price has reached it, and it fires when that minute is checked",
            "-1",
        ),
        (
            Type.PRICE_BELOW,
            "100",
            "99",
            LATER,
            "the last price has reached it, and it fires when that minute is checked",
            "1",
        ),
        (Type.PRICE_ABOVE, "100", "101", int(START), "no minute that opened after it was set has closed yet", "-1"),
    ],
)
def test_a_price_alert_waits_for_its_price(
    kind: Type, threshold: str, price: str, end: int, reason: str, distance: str
) -> None:
    last = LastPrice(D(price), end)
    found = progress_of(alert(kind, threshold=D(threshold)), last, LATER)
    assert (found.reason, found.price, found.distance) == (reason, last, D(distance))


@pytest.mark.parametrize(
    ("price", "reason"), [(None, "there is no price of BTC/USD"), ("the feed failed", "the feed failed")]
)
def test_an_alert_without_a_price_says_why(price: str | None, reason: str) -> None:
    found = progress_of(alert(), price, LATER)
    assert (found.reason, found.price, found.distance) == (reason, None, None)


def test_a_signal_alert_waits_for_the_next_bar() -> None:
    now = parse_time("2026-11-14T12:00:10Z")
    assert progress_of(
        alert(Type.INDICATOR_SIGNAL, threshold=None, indicator="rsi", signal="rsi_oversold"), None, now
    ).reason == (
        "no bar that closed since it was set has the signal rsi_oversold; the next one closes at 2026-11-14T12:01:00+00:00"
    )


@pytest.mark.parametrize(
    ("symbol", "opens"), [("AAPL", "2026-11-16T09:00:00+00:00"), ("EUR/USD", "2026-11-15T22:00:00+00:00")]
)
def test_a_closed_market_is_named_with_its_opening(symbol: str, opens: str) -> None:
    found = progress_of(alert(symbol=symbol), None, SATURDAY)
    assert found.reason == f"there is no price of {symbol}; the market is closed until {opens}"
