"""Resting orders and alerts on a market whose prices are known, and what must become of each of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.market.bars import MINUTE
from openbell.market.instruments import Instrument
from openbell.trading.alerts import Type
from openbell.trading.orders import OrderKind, Side
from openbell.trading.request import request
from tests.operations.observed import Observed
from tests.operations.path import Minutes, Path

PRINCIPALS = tuple(f"principal-{number}" for number in range(10))
_NEAR = (0.001, 0.02)
"""How far from the price the levels are that the market soon reaches, as shares."""
_FAR = (0.3, 0.6)
_SIGNALS_EVERY = 20
"""One alert of so many waits for a signal of an indicator."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must become of an order or an alert."""

    number: int
    """Of its symbol."""
    at: int | None
    """The end of the minute that fills or fires it; None if none does."""


@dataclass
class Load:
    """The orders and alerts of a desk."""

    desk: Desk
    instruments: Sequence[Instrument]
    end: int
    """When the run ends."""
    orders: dict[str, Expected] = field(default_factory=dict)
    alerts: dict[str, Expected] = field(default_factory=dict)
    signals: dict[str, int] = field(default_factory=dict)
    """The alerts on signals of indicators, each with the number of its symbol."""
    ended: int = 0
    """How many orders have filled and were replaced."""
    _chance: random.Random = field(default_factory=lambda: random.Random(7))
    _count: int = 0

    async def place(self, count: int, near: int) -> None:
        """Place limit orders to buy, `near` of them at prices that the market soon reaches."""
        for each in range(count):
            number, principal = self._next()
            level = self._level(number, above=False, near=each < near)
            asked = request(
                self.instruments[number],
                Side.BUY,
                OrderKind.LIMIT,
                Decimal("0.001"),
                price=str(level),
                client_order_id=f"order-{self._count}",
            )
            order = await self.desk.trading.orders.place(principal, asked)
            times = self._minutes(order.placed_at)
            self.orders[order.id] = Expected(number, _first(times, Path(number).lows(times) < level))

    async def set_alerts(self, count: int, near: int) -> None:
        """Set alerts on prices, `near` of them on such that the market soon reaches, and some on signals."""
        for each in range(count):
            number, principal = self._next()
            if each >= near and each % _SIGNALS_EVERY == 0:
                await self._set_signal(number, principal)
                continue
            above = self._chance.random() < 0.5
            level = self._level(number, above=above, near=each < near)
            kind = Type.PRICE_ABOVE if above else Type.PRICE_BELOW
            symbol = self.instruments[number].symbol
            alert = await self.desk.trading.alerts.set(principal, symbol, "1m", Condition(kind, str(level)))
            times, path = self._minutes(alert.set_at), Path(number)
            reached = path.highs(times) >= level if above else path.lows(times) <= level
            self.alerts[alert.id] = Expected(number, _first(times, reached))

    async def _set_signal(self, number: int, principal: str) -> None:
        wanted = Condition(Type.INDICATOR_SIGNAL, indicator="rsi", signal="rsi_oversold")
        alert = await self.desk.trading.alerts.set(principal, self.instruments[number].symbol, "15m", wanted)
        self.signals[alert.id] = number

    async def renew(self, observed: Observed, through: int) -> None:
        """Replace the orders and alerts that have ended by then: as many wait as at the beginning."""
        ended = _ended(self.orders, through)
        for order_id in ended:
            del self.orders[order_id]
        self.ended += len(ended)
        await self.place(len(ended), len(ended))
        ended = _ended(self.alerts, through)
        for alert_id in ended:
            del self.alerts[alert_id]
        await self.set_alerts(len(ended), len(ended))
        for alert_id in [each for each in self.signals if each in observed.fired]:
            await self._set_signal(self.signals.pop(alert_id), self._principal())

    def waiting(self, observed: Observed, through: int) -> int:
        """Returns how many alerts have not fired."""
        signals = sum(each not in observed.fired for each in self.signals)
        return len(self.alerts) - len(_ended(self.alerts, through)) + signals

    def lost_orders(self, observed: Observed, through: int) -> list[str]:
        """Returns what is wrong with orders: not filled exactly once at their time, or not resting any longer."""
        wrong, fills, states = [], observed.fills, observed.states
        for order_id, each in self.orders.items():
            due = each.at is not None and each.at <= through
            right = [float(each.at or 0)] if due else []
            if fills.get(order_id, []) != right or states.get(order_id) != ("filled" if due else "open"):
                wrong.append(f"{order_id}: {states.get(order_id)}, fills {fills.get(order_id)}, expected {each.at}")
        filled = self.ended + len(_ended(self.orders, through))
        if sum(map(len, fills.values())) != filled:
            wrong.append(f"{sum(map(len, fills.values()))} fills, expected {filled}")
        return wrong

    def lost_alerts(self, observed: Observed, through: int) -> list[str]:
        """Returns what is wrong with alerts: not fired at their time, or not exactly one notification."""
        wrong, fired, inbox = [], observed.fired, observed.inbox
        for alert_id, each in self.alerts.items():
            due = each.at is not None and each.at <= through
            if fired.get(alert_id) != (float(each.at or 0) if due else None) or inbox[alert_id] != due:
                wrong.append(f"{alert_id}: {fired.get(alert_id)}, {inbox[alert_id]} times, expected {each.at}")
        wrong += [f"{each}: {inbox[each]} times" for each in self.signals if inbox[each] != (each in fired)]
        return wrong

    def _next(self) -> tuple[int, str]:
        self._count += 1
        return self._count % len(self.instruments), self._principal()

    def _principal(self) -> str:
        return PRINCIPALS[self._count % len(PRINCIPALS)]

    def _level(self, number: int, *, above: bool, near: bool) -> float:
        now = np.array([self.desk.bars.closed_until() - MINUTE], dtype=np.int64)
        away = self._chance.uniform(*(_NEAR if near else _FAR))
        return round(float(Path(number).closes(now)[0]) * (1 + away if above else 1 - away), 2)

    def _minutes(self, since: float) -> Minutes:
        """Returns the minutes that open after a time and before the end of the run."""
        return np.arange(-(-since // MINUTE) * MINUTE, self.end, MINUTE).astype(np.int64)


def _first(times: Minutes, reached: npt.NDArray[np.bool_]) -> int | None:
    """Returns the end of the first minute for which a condition holds; None if there is none."""
    return int(times[reached.argmax()]) + MINUTE if reached.any() else None


def _ended(expected: Mapping[str, Expected], through: int) -> list[str]:
    return [name for name, each in expected.items() if each.at is not None and each.at <= through]
