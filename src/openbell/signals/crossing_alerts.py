"""Alerts on crossings: the conditions of a subscription, and when it sends an alert. A state machine without a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf, isfinite

from openbell.market.clock import iso
from openbell.market.digits import significant
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import Instrument
from openbell.market.nearest import did_you_mean
from openbell.market.timeframes import Timeframe
from openbell.signals.crossings import SignalCrossings, SignalSnapshot

METHOD = "signals.alert"
"""The notification of an alert."""
CROSSINGS: tuple[str, ...] = SignalCrossings.__slots__
MACD_CROSS = "macd_cross"
CONDITIONS: tuple[str, ...] = (*CROSSINGS, MACD_CROSS)
DIRECTIONS = {"up": ("macd_cross_up",), "down": ("macd_cross_dn",)}


def watched_crossings(conditions: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    """Returns the crossings of a list of (type, direction), in the contract's order. Raises `InvalidParameter`."""
    wanted: set[str] = set()
    for kind, direction in conditions:
        if kind == MACD_CROSS:
            if direction is None:
                wanted |= {"macd_cross_up", "macd_cross_dn"}
            elif direction in DIRECTIONS:
                wanted |= set(DIRECTIONS[direction])
            else:
                raise InvalidParameter(f"direction must be up or down, not {direction!r}")
        elif kind in CROSSINGS:
            if direction is not None:
                raise InvalidParameter(f"{kind} takes no direction; only {MACD_CROSS} does")
            wanted.add(kind)
        else:
            raise InvalidParameter(
                f"unknown condition {kind!r}: use one of {', '.join(CONDITIONS)}{did_you_mean(kind, CONDITIONS)}"
            )
    if not wanted:
        raise InvalidParameter("conditions must have at least one condition")
    return tuple(name for name in CROSSINGS if name in wanted)


@dataclass(frozen=True, slots=True)
class CrossingAlert:
    """One alert of a subscription."""

    triggered: tuple[str, ...]
    """The crossings that became true since the previous alert."""
    snapshot: SignalSnapshot
    """The latest bar at which one of them became true."""


@dataclass(frozen=True, slots=True)
class CrossingRequest:
    """What a client asks to be notified of."""

    principal: str
    symbol: str
    timeframe: Timeframe
    spelling: str
    """The contract's name of the timeframe."""
    conditions: tuple[tuple[str, str | None], ...]
    """Types and directions."""
    throttle_ms: int

    def subscription(self, name: str, instrument: Instrument) -> CrossingSubscription:
        """Returns the subscription. Raises `InvalidParameter` if a condition is not known."""
        crossings = watched_crossings(self.conditions)
        return CrossingSubscription(
            name, self.principal, instrument, self.timeframe, self.spelling, crossings, self.throttle_ms
        )


@dataclass(frozen=True, slots=True)
class CrossingSubscription:
    """A subscription to crossings; its id is needed to end it."""

    id: str
    principal: str
    instrument: Instrument
    timeframe: Timeframe
    spelling: str
    """The contract's name of the timeframe."""
    crossings: tuple[str, ...]
    throttle_ms: int

    def has_terms_of(self, other: CrossingSubscription) -> bool:
        """Returns True if both differ in their ids only."""
        return replace(self, id=other.id) == other

    def notification(self, alert: CrossingAlert) -> dict[str, object]:
        """Returns the parameters of the notification of an alert."""
        last = alert.snapshot
        computed = {"macd": last.macd, "signal": last.signal, "rsi": last.rsi}
        values = {"price": last.price} | {name: significant(value) for name, value in computed.items()}
        return {
            "subscription_id": self.id,
            "symbol": self.instrument.symbol,
            "timeframe": self.spelling,
            "triggered": list(alert.triggered),
            "snapshot": {name: value if isfinite(value) else None for name, value in values.items()},
            "timestamp": iso(last.time + self.timeframe.seconds),
        }


@dataclass(slots=True)
class Watch:
    """Processes the closed bars of one series in order. A crossing triggers at the bar at which it becomes true."""

    wanted: tuple[str, ...]
    """The crossings that trigger an alert."""
    throttle: float
    """Minimum seconds between two alerts; crossings that trigger in between are merged into the next alert."""
    seen: int = -1
    """The open time of the latest processed bar; −1 before the first."""
    _true: frozenset[str] = frozenset()
    _pending: list[str] = field(default_factory=list)
    _snapshot: SignalSnapshot | None = None
    _sent_at: float = -inf

    def begin(self, time: int, crossings: SignalCrossings) -> None:
        """Start after the bar that opened at `time`: its crossings do not trigger."""
        self.seen = time
        self._true = frozenset(crossings.true())

    def observe(self, snapshot: SignalSnapshot, crossings: SignalCrossings) -> None:
        """Process the next closed bar."""
        now_true = frozenset(crossings.true())
        became = [name for name in self.wanted if name in now_true and name not in self._true]
        self.seen, self._true = snapshot.time, now_true
        if became:
            self._pending += [name for name in became if name not in self._pending]
            self._snapshot = snapshot

    def sent(self, at: float) -> None:
        """Set when the last alert was sent: a watch that is made anew has the throttle of the earlier one."""
        self._sent_at = at

    def due(self) -> float:
        """Returns the time from which the pending alert may be sent; infinity if none is pending."""
        return self._sent_at + self.throttle if self._pending else inf

    def take(self, now: float) -> CrossingAlert | None:
        """Returns and removes the alert that is due at `now`; None if there is none."""
        if self._snapshot is None or now < self.due():
            return None
        alert = CrossingAlert(tuple(self._pending), self._snapshot)
        self._pending, self._snapshot, self._sent_at = [], None, now
        return alert
