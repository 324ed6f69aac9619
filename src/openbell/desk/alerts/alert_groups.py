"""The active alerts of the engine, grouped by the bars that decide them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from openbell.indicators.evaluation import IndicatorRequest
from openbell.indicators.registry import get
from openbell.market.bars import Bars
from openbell.market.instruments import parse
from openbell.market.series_plan import next_close
from openbell.market.timeframes import SHORT, Timeframe, name_of
from openbell.trading.alerts import Alert, AlertState, PriceLevels, levels_of

GroupKey = tuple[str, Timeframe]


def key_of(alert: Alert) -> GroupKey:
    """Returns the group of an alert: its symbol, and the timeframe of the bars that decide it."""
    return alert.symbol, Timeframe.M1 if alert.type.of_price else SHORT[alert.interval]


class AlertGroup:
    """The active alerts that the bars of one symbol at one timeframe decide."""

    def __init__(self, symbol: str, timeframe: Timeframe) -> None:
        self.instrument = parse(symbol)
        self.timeframe = timeframe
        self.name = f"{symbol} {name_of(timeframe, SHORT)}"
        """The name of the group in messages; no other group has it."""
        self.alerts: dict[str, Alert] = {}
        self.seen: float = 0.0
        """The alerts were checked on bars that closed up to this time."""
        self.prepared = False
        """The engine has read the bars of the group's signal alerts before one of them closed, or tried to."""
        self._levels: PriceLevels | None = None
        self._closes = (-1.0, 0)
        """A time of the last check, and when the next bar after it closes."""

    def only(self, alert: Alert) -> AlertGroup:
        """Returns a group of one of the alerts, checked as far as this one."""
        made = AlertGroup(alert.symbol, self.timeframe)
        made.name, made.seen = f"{self.name}: {alert.id}", self.seen
        made.put(alert)
        return made

    def put(self, alert: Alert) -> None:
        """Add an active alert, or remove one that has ended."""
        self._levels = None
        if alert.state is AlertState.ACTIVE:
            self.alerts[alert.id] = alert
        else:
            self.alerts.pop(alert.id, None)

    def within_reach(self, bars: Bars) -> bool:
        """Returns True if any price alert can fire on these bars."""
        if self._levels is None:
            self._levels = levels_of(self.alerts.values())
        return self._levels.can_fire(bars)

    def is_due(self, until: int) -> bool:
        """Returns True if a bar of the timeframe may have closed since the last check."""
        return self.seen < until and self._next_close() <= until

    def _next_close(self) -> int:
        """Returns the first time after the last check at which a bar of the timeframe closes."""
        if self._closes[0] != self.seen:
            self._closes = (self.seen, next_close(self.instrument, self.timeframe, self.seen))
        return self._closes[1]

    def of_price(self) -> list[Alert]:
        """Returns the price alerts."""
        return [alert for alert in self.alerts.values() if alert.type.of_price]

    def by_indicator(self) -> dict[str, list[Alert]]:
        """Returns the signal alerts by indicator."""
        found: dict[str, list[Alert]] = defaultdict(list)
        for alert in self.alerts.values():
            if alert.indicator is not None:
                found[alert.indicator].append(alert)
        return found

    def requests(self) -> list[IndicatorRequest]:
        """Returns the indicators of the signal alerts, with their default settings."""
        names = {alert.indicator: None for alert in self.alerts.values() if alert.indicator is not None}
        return [IndicatorRequest(name, get(name), get(name).settings()) for name in names]


class AlertGroups:
    """All groups, and alone the alerts that could not be checked with the others of their group."""

    def __init__(self) -> None:
        self._shared: dict[GroupKey, AlertGroup] = {}
        self._alone: dict[str, AlertGroup] = {}
        """By alert."""

    def all(self) -> list[AlertGroup]:
        """Returns the groups that have alerts."""
        return [group for group in (*self._shared.values(), *self._alone.values()) if group.alerts]

    def clear(self) -> None:
        """Drop all groups."""
        self._shared, self._alone = {}, {}

    def put(self, alert: Alert, seen: float) -> None:
        """Add an active alert that was checked up to the time `seen`, or remove one that has ended."""
        if (alone := self._alone.get(alert.id)) is not None:
            if alert.state is AlertState.ACTIVE:
                alone.put(alert)
            else:
                del self._alone[alert.id]
            return
        if (group := self._shared.get(key_of(alert))) is None:
            if alert.state is not AlertState.ACTIVE:
                return
            group = self._shared[key_of(alert)] = AlertGroup(*key_of(alert))
        if alert.state is AlertState.ACTIVE:
            group.seen = min(group.seen, seen) if group.alerts else seen
        group.put(alert)

    def set_apart(self, alert: Alert) -> AlertGroup:
        """Make an alert a group of its own, checked as far as its group is now. Returns it."""
        group = self._shared[key_of(alert)]
        alone = self._alone[alert.id] = group.only(alert)
        group.put(replace(alert, state=AlertState.CANCELLED))
        return alone
