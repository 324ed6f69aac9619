"""Alerts on crossings: the conditions of a subscription, and when it sends an alert. A state machine without a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean
from openbell.signals.crossings import Crossings, Snapshot

CROSSINGS: tuple[str, ...] = Crossings.__slots__
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
    snapshot: Snapshot
    """The latest bar at which one of them became true."""


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
    _snapshot: Snapshot | None = None
    _sent_at: float = -inf

    def begin(self, time: int, crossings: Crossings) -> None:
        """Start after the bar that opened at `time`: its crossings do not trigger."""
        self.seen = time
        self._true = frozenset(crossings.true())

    def observe(self, snapshot: Snapshot, crossings: Crossings) -> None:
        """Process the next closed bar."""
        now_true = frozenset(crossings.true())
        became = [name for name in self.wanted if name in now_true and name not in self._true]
        self.seen, self._true = snapshot.time, now_true
        if became:
            self._pending += [name for name in became if name not in self._pending]
            self._snapshot = snapshot

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
