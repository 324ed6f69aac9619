"""Alerts: one condition on one symbol, which fires once.

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
from openbell.market.bars import Bars, Values, bucket_bounds
from openbell.market.errors import InvalidParameter
from openbell.trading import amounts


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
