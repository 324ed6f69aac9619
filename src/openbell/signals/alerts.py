"""Alerts on crossings: which conditions a subscription watches, and when it speaks. A state machine without a clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from openbell.market.errors import InvalidParameter
from openbell.market.nearest import hint
from openbell.signals.crossings import Crossings, Snapshot

CROSSINGS: tuple[str, ...] = Crossings.__slots__
MACD_CROSS = "macd_cross"
CONDITIONS: tuple[str, ...] = (*CROSSINGS, MACD_CROSS)
DIRECTIONS = {"up": ("macd_cross_up",), "down": ("macd_cross_dn",)}


def watched_crossings(conditions: Iterable[tuple[str, str | None]]) -> tuple[str, ...]:
    """The crossings that a list of (type, direction) asks for, in the contract's order."""
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
                f"unknown condition {kind!r}: use one of {', '.join(CONDITIONS)}{hint(kind, CONDITIONS)}"
            )
    if not wanted:
        raise InvalidParameter("conditions must name at least one")
    return tuple(name for name in CROSSINGS if name in wanted)


@dataclass(frozen=True, slots=True)
class Alert:
    """What a subscription says: everything that became true since it last spoke, and the numbers of the last
    bar at which something did.
    """

    triggered: tuple[str, ...]
    snapshot: Snapshot


@dataclass(slots=True)
class Watch:
    """Follows one series bar by bar. A condition fires at the bar at which it becomes true, never for what was before."""

    wanted: tuple[str, ...]
    throttle: float
    """Seconds between two alerts; what falls in between is merged into the next."""
    seen: int = -1
    _holding: frozenset[str] = frozenset()
    _pending: list[str] = field(default_factory=list)
    _snapshot: Snapshot | None = None
    _spoke: float = -inf

    def begin(self, time: int, crossings: Crossings) -> None:
        """Take the present bar as known."""
        self.seen = time
        self._holding = frozenset(crossings.true())

    def observe(self, snapshot: Snapshot, crossings: Crossings) -> None:
        """Take in the next closed bar."""
        holding = frozenset(crossings.true())
        became = [name for name in self.wanted if name in holding and name not in self._holding]
        self.seen, self._holding = snapshot.time, holding
        if became:
            self._pending += [name for name in became if name not in self._pending]
            self._snapshot = snapshot

    def due(self) -> float:
        """The moment from which an alert may go out; infinity if there is none."""
        return self._spoke + self.throttle if self._pending else inf

    def take(self, now: float) -> Alert | None:
        """The alert that is due at `now`, if any."""
        if self._snapshot is None or now < self.due():
            return None
        alert = Alert(tuple(self._pending), self._snapshot)
        self._pending, self._snapshot, self._spoke = [], None, now
        return alert
