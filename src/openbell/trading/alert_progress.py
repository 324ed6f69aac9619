"""How far an active alert is from firing: the last value, the distance to its threshold, and what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from openbell.market.bars import MINUTE
from openbell.market.clock import iso
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.series_plan import next_close
from openbell.market.sessions import Phase, next_open, phase
from openbell.market.timeframes import SHORT
from openbell.trading import amounts
from openbell.trading.alerts import PRICE_CONDITIONS, Alert
from openbell.trading.waiting import forex_opens


@dataclass(frozen=True, slots=True)
class LastPrice:
    """The close of the newest bar of a symbol."""

    value: Decimal
    end: int
    """The end of its bar."""


@dataclass(frozen=True, slots=True)
class AlertProgress:
    """Why an alert has not fired."""

    reason: str
    price: LastPrice | None = None
    """Of a price alert: the last price, if there is one."""
    distance: Decimal | None = None
    """By how much the price must move to reach the threshold: above 0 if it must rise."""


def progress_of(alert: Alert, price: LastPrice | str | None, now: float) -> AlertProgress:
    """Returns why an active alert has not fired. `price` is the last price of its symbol, or the reason why it has none."""
    instrument = parse(alert.symbol)
    closed = _closed(instrument, now)
    if alert.threshold is None:
        due = iso(next_close(instrument, SHORT[alert.interval], now))
        waits = f"no bar that closed since it was set has the signal {alert.signal}; the next one closes at {due}"
        return AlertProgress(_joined(waits, closed))
    if price is None or isinstance(price, str):
        return AlertProgress(_joined(price or f"there is no price of {alert.symbol}", closed))
    with amounts.exact():
        distance = alert.threshold - price.value
    if price.end - MINUTE < alert.set_at:
        waits = "no minute that opened after it was set has closed yet"
    elif PRICE_CONDITIONS[alert.type].is_reached(float(price.value), float(alert.threshold)):
        waits = "the last price has reached it, and it fires when that minute is checked"
    else:
        way = "rise" if distance > 0 else "fall"
        waits = f"the price must {way} by {amounts.text(abs(distance))} from {amounts.text(price.value)}"
    return AlertProgress(_joined(waits, closed), price, distance)


def _closed(instrument: Instrument, now: float) -> str | None:
    """Returns that the market is closed and when it opens; None if it trades, in extended hours too."""
    if phase(instrument, now) is not Phase.CLOSED:
        return None
    if instrument.asset_class is AssetClass.FOREX:
        return f"the market is closed until {iso(forex_opens(now))}"
    session = next_open(now)
    return f"the market is closed until {iso(session.premarket)}" if session else "the market is closed"


def _joined(*clauses: str | None) -> str:
    return "; ".join(filter(None, clauses))
