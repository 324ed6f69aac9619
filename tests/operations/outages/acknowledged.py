"""What the desk has acknowledged, and whether all of it is there exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.operations.outages.actions import SIZE, Outcome, attempt
from tests.operations.outages.station import SYMBOL, Station

_PAGE = 100
_FAR = 0.96
"""The limit of an order that rests, as a share of the price: within the collar of 5 %, and never reached here."""
_SIGNS = {"buy": Decimal(1), "sell": Decimal(-1)}


@dataclass
class Writer:
    """Places and cancels orders, sets alerts and saves decisions, each with a name of its own."""

    station: Station
    asked: dict[str, str] = field(default_factory=dict)
    """The kind of each: buy, sell, rest, alert or decision."""
    ids: dict[str, str] = field(default_factory=dict)
    """The id of each that was acknowledged."""
    refused: set[str] = field(default_factory=set)
    """Those that were refused for certain."""
    cancelled: set[str] = field(default_factory=set)
    """Resting orders whose cancellation was acknowledged."""
    count: int = 0

    async def write(self, kind: str, name: str = "") -> Outcome:
        """Ask for something new, or again for what has this name."""
        if not name:
            self.count += 1
            name = f"n{self.count}"
        self.asked[name] = kind
        found = await (self._alert if kind == "alert" else self._decide if kind == "decision" else self._order)(name)
        self.refused.discard(name)
        if found.works:
            self.ids[name] = next(
                found.payload[key] for key in ("order_id", "alert_id", "decision_id") if key in found.payload
            )
        elif not found.is_uncertain:
            self.refused.add(name)
        return found

    async def cancel(self, name: str) -> Outcome:
        """Cancel a resting order."""
        found = await attempt(self.station, "chartgen", "cancel_order", order_id=self.ids[name])
        if found.works:
            self.cancelled.add(name)
        return found

    def forget(self, names: Iterable[str]) -> None:
        """No longer expect what an older copy cannot have."""
        for name in names:
            self.ids.pop(name)
            self.asked.pop(name)

    @property
    def expected(self) -> float:
        """What is held when all acknowledged orders have filled."""
        return float(sum(_SIGNS.get(self.asked[name], 0) for name in self.ids) * Decimal(SIZE))

    def unanswered(self, found: Found) -> list[str]:
        """Names of what must be asked for again. What was uncertain and is there counts as acknowledged."""
        again = [name for name in self.asked if name not in self.ids]
        taken = {name: each for name in again if (each := found.ids.get(name)) and self.asked[name] not in _SIGNS}
        self.ids |= taken
        return [name for name in again if name not in taken]

    async def _order(self, name: str) -> Outcome:
        kind = self.asked[name]
        terms: dict[str, Any] = {"side": kind, "type": "market", "reduce_only": kind == "sell"}
        if kind == "rest":
            price = (await self.station.ask("market-data", "get_current_price", symbol=SYMBOL))["price"]
            terms = {"side": "buy", "type": "limit", "price": f"{price * _FAR:.2f}"}
        given = {"symbol": SYMBOL, "quantity": SIZE, "client_order_id": name}
        return await attempt(self.station, "chartgen", "place_order", **given, **terms)

    async def _alert(self, name: str) -> Outcome:
        condition = {"price_above": float(name[1:])}
        return await attempt(self.station, "chartgen", "set_alert", symbol=SYMBOL, condition=condition)

    async def _decide(self, name: str) -> Outcome:
        given = {"symbol": SYMBOL, "action": "HOLD", "confidence": 0.5, "reasoning": name}
        return await attempt(self.station, "decisions", "save_decision", **given)


@dataclass(frozen=True)
class Found:
    """What the desk shows, by name; each list has one entry for each time that the name is there."""

    orders: list[dict[str, Any]]
    active: list[dict[str, Any]]
    fired: list[dict[str, Any]]
    decisions: list[dict[str, Any]]
    held: Decimal

    @classmethod
    async def on(cls, station: Station) -> Found:
        """Read everything from a desk."""
        decisions: list[dict[str, Any]] = []
        more = True
        while more:
            page = await station.ask("decisions", "get_recent_decisions", limit=_PAGE, offset=len(decisions))
            decisions += page["items"]
            more = page["pagination"]["has_more"]
        positions = (await station.ask("chartgen", "get_positions"))["positions"]
        return cls(
            (await station.ask("chartgen", "get_orders", limit=1000, detail=True))["orders"],
            (await station.ask("chartgen", "list_alerts"))["alerts"],
            (await station.ask("chartgen", "get_notifications", cursor=0, limit=1000))["notifications"],
            decisions,
            sum((Decimal(each["quantity"]) for each in positions), Decimal(0)),
        )

    @property
    def _named(self) -> Iterator[tuple[str, str]]:
        """Name and id of everything."""
        yield from ((each["client_order_id"], each["order_id"]) for each in self.orders)
        yield from ((f"n{each['condition']['threshold']:g}", each["alert_id"]) for each in self.active)
        yield from ((f"n{each['condition']['threshold']:g}", each["alert_id"]) for each in self.fired)
        yield from ((each["reasoning"], each["decision_id"]) for each in self.decisions)

    @property
    def ids(self) -> dict[str, str]:
        """The ids by name."""
        return dict(self._named)

    @property
    def states(self) -> dict[str, str]:
        """The states of orders, by name."""
        return {each["client_order_id"]: each["status"] for each in self.orders}

    def refused_but_there(self, writer: Writer) -> list[str]:
        """What was refused for certain and was done all the same."""
        return [
            f"{writer.asked[name]} {name} was refused and is there" for name in sorted(writer.refused & set(self.ids))
        ]

    def faults(self, writer: Writer) -> Iterator[str]:
        """What is lost, doubled or invented."""
        times, ids, states = Counter(name for name, _ in self._named), self.ids, self.states
        for name, each in writer.ids.items():
            kind = writer.asked[name]
            if times[name] != 1 or ids[name] != each:
                yield f"{kind} {name} is there {times[name]} times"
            elif kind in _SIGNS and states[name] != "filled":
                yield f"{kind} {name} is {states[name]}"
            elif kind == "rest" and states[name] != ("cancelled" if name in writer.cancelled else "open"):
                yield f"{kind} {name} is {states[name]}, its cancellation was acknowledged: {name in writer.cancelled}"
        yield from (f"{name} was never asked for" for name in times if name not in writer.ids)
        filled = sum(_SIGNS[each["side"]] * Decimal(each["filled_quantity"]) for each in self.orders)
        wanted = sum(_SIGNS[kind] for name, kind in writer.asked.items() if kind in _SIGNS) * Decimal(SIZE)
        if not self.held == filled == wanted:
            yield f"{self.held} is held, {filled} was filled, {wanted} was acknowledged"
