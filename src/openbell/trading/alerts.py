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
from typing import Any

import numpy as np

from openbell.indicators.channels import Signal
from openbell.indicators.registry import get
from openbell.market.bars import Bars, bucket_bounds
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
        return self is not Type.INDICATOR_SIGNAL


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
        """The condition as notifications show it."""
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


def price_firings(alerts: Iterable[Alert], bars: Bars, since: float) -> list[Firing]:
    """Returns the firings of price alerts by bars of their symbol that closed after `since`."""
    if not len(bars):
        return []
    ends = bucket_bounds(bars.instrument, bars.timeframe, bars.time)[1]
    fresh = int(np.searchsorted(ends, since, side="right"))
    firings = []
    for alert in alerts:
        first = max(fresh, int(np.searchsorted(bars.time, alert.set_at)))
        above = alert.type is Type.PRICE_ABOVE
        values = bars.high if above else bars.low
        level = float(alert.threshold or 0)
        if first >= len(bars):
            continue
        reached = values[first:] >= level if above else values[first:] <= level
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
