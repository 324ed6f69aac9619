"""Alerts: one condition on one symbol, which fires once, how far it is from firing, and the notification when it has fired.

A price alert fires on the first minute bar that opened at or after the time at which it was set and whose high (low) reaches
the threshold, even if the price was there already; its interval has no effect. A signal alert fires when a bar that closes
after it was set confirms the signal. Earlier signals never fire it, even if a chart still shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.indicators.channels import Signal
from openbell.indicators.registry import get
from openbell.market.bars import MINUTE, Bars, Values, bucket_bounds
from openbell.market.clock import iso
from openbell.market.digits import significant
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import AssetClass, Instrument, parse
from openbell.market.series_plan import next_close
from openbell.market.sessions import Phase, next_open, phase
from openbell.market.timeframes import SHORT
from openbell.trading import amounts
from openbell.trading.waiting import forex_opens

ALERT_TRIGGERED = "notifications/alert_triggered"
QUEUE_SECONDS = 3600
"""How long a notification waits to be pushed."""
QUEUE_MOST = 1000
"""The most notifications that wait for one principal."""


class Type(StrEnum):
    """The type of an alert's condition."""

    PRICE_ABOVE = "price_above"
    PRICE_BELOW = "price_below"
    INDICATOR_SIGNAL = "indicator_signal"

    @property
    def of_price(self) -> bool:
        """Whether it is a condition on the price."""
        return self in PRICE_CONDITIONS


@dataclass(frozen=True, slots=True)
class PriceCondition:
    """A condition on the price: a side of the threshold."""

    label: str
    """The name of its line in charts."""
    above: bool
    """Whether the price must rise to the threshold; otherwise it must fall to it."""

    def prices(self, bars: Bars) -> Values:
        """Returns the prices of bars that reach furthest towards the threshold."""
        return bars.high if self.above else bars.low

    def is_reached(self, values: Values | float, level: float) -> npt.NDArray[np.bool_] | bool:
        """Returns True where `prices` have reached the threshold."""
        return values >= level if self.above else values <= level


PRICE_CONDITIONS = {
    Type.PRICE_ABOVE: PriceCondition("Alert above", above=True),
    Type.PRICE_BELOW: PriceCondition("Alert below", above=False),
}


class AlertState(StrEnum):
    """The state of an alert."""

    ACTIVE = "active"
    FIRED = "fired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    id: str
    principal: str
    symbol: str
    spelling: str
    """The symbol as the caller wrote it; results repeat it."""
    interval: str
    """The timeframe as the caller wrote it; price alerts always use minute bars."""
    type: Type
    set_at: float
    threshold: Decimal | None = None
    indicator: str | None = None
    signal: str | None = None
    state: AlertState = AlertState.ACTIVE
    fired_at: float | None = None
    """When the bar that fired it closed."""
    value: float | None = None
    """The price or the indicator's value at which it fired."""
    bar_hash: str | None = None
    updated_at: float = 0.0

    @property
    def condition(self) -> dict[str, Any]:
        """The condition as every result and notification shows it."""
        if self.threshold is not None:
            return {"type": self.type.value, "threshold": amounts.number(self.threshold)}
        return {"type": self.type.value, "indicator": self.indicator, "signal": self.signal}


@dataclass(frozen=True, slots=True)
class Firing:
    """The firing of an alert: the index of the bar that fired it, and the value."""

    alert: Alert
    index: int
    value: float
    at: float
    """When the bar closed."""


def registered(indicator: str, signal: str) -> str:
    """Returns the registered name of an indicator. Raises `InvalidParameter` if it has no such signal."""
    found = get(indicator)
    if signal not in found.labels:
        known = ", ".join(found.labels) or "none"
        raise InvalidParameter(f"{indicator} has no signal {signal[:40]!r}; it has {known}")
    return found.name


@dataclass(frozen=True, slots=True)
class PriceLevels:
    """The levels of many price alerts that are reached first: two comparisons rule out most bars for all of them."""

    above: float
    below: float

    def can_fire(self, bars: Bars) -> bool:
        """Returns True if any of the alerts can fire on these bars."""
        return len(bars) > 0 and bool(bars.high.max() >= self.above or bars.low.min() <= self.below)


def levels_of(alerts: Iterable[Alert]) -> PriceLevels:
    """Returns the levels of the price alerts among `alerts`."""
    above, below = inf, -inf
    for alert in alerts:
        if (condition := PRICE_CONDITIONS.get(alert.type)) is None:
            continue
        level = float(alert.threshold or 0)
        above, below = (min(above, level), below) if condition.above else (above, max(below, level))
    return PriceLevels(above, below)


def price_firings(alerts: Iterable[Alert], bars: Bars, since: float) -> list[Firing]:
    """Returns the firings of price alerts by bars of their symbol that closed after `since`."""
    if not len(bars):
        return []
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    fresh = int(np.searchsorted(ends, since, side="right"))
    firings = []
    for alert in alerts:
        first = max(fresh, int(np.searchsorted(bars.time, alert.set_at)))
        if first >= len(bars):
            continue
        condition = PRICE_CONDITIONS[alert.type]
        values = condition.prices(bars)
        reached = np.asarray(condition.is_reached(values[first:], float(alert.threshold or 0)))
        at = int(reached.argmax())
        if reached[at]:
            index = first + at
            firings.append(Firing(alert, index, float(values[index]), float(ends[index])))
    return firings


def signal_firings(alerts: Iterable[Alert], bars: Bars, signals: Iterable[Signal], since: float) -> list[Firing]:
    """Returns the firings of signal alerts by signals of bars that closed after `since` and after the alert was set."""
    if not len(bars):
        return []
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    found = sorted(signals, key=lambda signal: signal.index)
    firings = []
    for alert in alerts:
        for signal in found:
            end = float(ends[signal.index])
            if signal.label == alert.signal and end > alert.set_at and end > since:
                firings.append(Firing(alert, signal.index, signal.value, end))
                break
    return firings


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


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Selects the alerts that are pushed; an empty set selects all."""

    symbols: frozenset[str] = frozenset()
    alert_types: frozenset[str] = frozenset()

    def takes(self, alert: Alert) -> bool:
        """Returns True if an alert passes the filter."""
        return (not self.symbols or alert.symbol in self.symbols) and (
            not self.alert_types or alert.type in self.alert_types
        )


def notification(firing: Firing, triggered_at: str) -> dict[str, Any]:
    """Returns the notification of a fired alert, as it is stored and pushed."""
    alert = firing.alert
    return {
        "alert_id": alert.id,
        "symbol": alert.spelling,
        "interval": alert.interval,
        "condition": alert.condition,
        "value": firing.value if alert.type.of_price else significant(firing.value),
        "triggered_at": triggered_at,
    }
