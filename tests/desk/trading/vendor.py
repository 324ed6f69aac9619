"""A simulated broker with records of its own, which survive every process."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from openbell.trading.amounts import ZERO
from openbell.trading.broker import BrokerExecution, OrderReport
from openbell.trading.orders import FINAL, Order, OrderState, Role, Side

ACCEPTED, ANSWER_LOST, NEVER_ARRIVED, DELAYED, REFUSED, UNAVAILABLE = (
    "accepted",
    "the answer was lost",
    "it never arrived",
    "it arrives later",
    "refused",
    "unavailable",
)
OUTCOMES = (ACCEPTED, ANSWER_LOST, NEVER_ARRIVED, DELAYED, REFUSED, UNAVAILABLE)
WEIGHTS = (56, 12, 8, 12, 6, 6)


@dataclass
class Kept:
    """An order as the broker has it."""

    order: Order
    broker_id: str
    quantity: Decimal
    state: OrderState = OrderState.OPEN
    executions: list[BrokerExecution] = field(default_factory=list)
    exits: list[Kept] = field(default_factory=list)
    told: int = 0
    """The number of executions that were reported; the newest may be reported one lookup later."""

    @property
    def filled(self) -> Decimal:
        return sum((each.quantity for each in self.executions), ZERO)

    @property
    def remaining(self) -> Decimal:
        return self.quantity - self.filled

    @property
    def working(self) -> bool:
        return self.state in {OrderState.OPEN, OrderState.PARTIALLY_FILLED}


class Vendor:
    """The broker. It is a violation to send it an order twice, or before the order is recorded."""

    def __init__(self, chance: random.Random, clock: Callable[[], float], written: Callable[[str], bool]) -> None:
        self._chance = chance
        self._clock = clock
        self._written = written
        self.orders: dict[str, Kept] = {}
        self.delayed: list[Order] = []
        self.submitted: Counter[str] = Counter()
        self.outcomes: dict[str, str] = {}
        self.violations: list[str] = []
        self.calm = False
        """Whether every request is answered from now on."""
        self.eager = chance.random() < 0.5
        """Whether exits work as soon as their entry is partly filled, or only when it has ended."""
        self.late = chance.random() < 0.3
        """Whether the newest fill is reported one lookup later than the others."""
        self._count = 0

    def fails(self, share: float) -> bool:
        return not self.calm and self._chance.random() < share

    def outcome(self, order: Order) -> str:
        """Returns the random outcome of a submission; reports violations."""
        self.submitted[order.id] += 1
        if self.submitted[order.id] > 1:
            self.violations.append(f"{order.id} was sent twice")
        if order.role.exit or order.state is not OrderState.PENDING:
            self.violations.append(f"{order.id} was sent as {order.role} {order.state}")
        if not self._written(order.id):
            self.violations.append(f"{order.id} was sent before it was written down")
        chosen = ACCEPTED if self.calm else self._chance.choices(OUTCOMES, WEIGHTS)[0]
        self.outcomes[order.id] = chosen
        return chosen

    def take(self, order: Order) -> None:
        """Record an order that has arrived."""
        if order.id in self.orders:
            self.violations.append(f"{order.id} arrived twice")
            return
        kept = Kept(order, self._number("v"), order.quantity)
        prices = ((Role.TAKE_PROFIT, order.take_profit, "tp"), (Role.STOP_LOSS, order.stop_loss, "sl"))
        for role, price, ending in prices:
            if price is not None:
                exit_ = replace(order, id=f"{order.id}-{ending}", side=order.side.other, role=role, parent=order.id)
                kept.exits.append(Kept(exit_, self._number("v"), ZERO, OrderState.HELD))
        self.orders[order.id] = kept

    def arrive(self) -> None:
        """Deliver one delayed order."""
        if self.delayed:
            self.take(self.delayed.pop(self._chance.randrange(len(self.delayed))))

    def everything(self) -> list[Kept]:
        """Returns all orders and exits."""
        return [each for kept in self.orders.values() for each in (kept, *kept.exits)]

    def find(self, our_id: str) -> Kept | None:
        return next((each for each in self.everything() if each.order.id == our_id), None)

    # Fills

    def trade(self, prices: Mapping[str, Decimal]) -> None:
        """Fill a part, or all, of a random working order."""
        working = [each for each in self.everything() if each.working]
        if working:
            kept = self._chance.choice(working)
            part = kept.remaining if self._chance.random() < 0.5 else (kept.remaining / 2).quantize(Decimal("0.01"))
            self.fill(kept, part if part > 0 else kept.remaining, self._price(kept, prices[kept.order.symbol]))

    def _price(self, kept: Kept, last: Decimal) -> Decimal:
        limit = kept.order.limit_price
        slip = Decimal(self._chance.randrange(0, 200)) / Decimal(100)
        if limit is None:
            return last + slip * kept.order.side.sign
        return limit - slip / 2 if kept.order.side is Side.BUY else limit + slip / 2

    def fill(self, kept: Kept, quantity: Decimal, price: Decimal) -> None:
        fee = Decimal(self._chance.randrange(0, 300)) / Decimal(1000)
        kept.executions.append(BrokerExecution(self._number("x"), quantity, price, round(self._clock(), 3), fee))
        kept.state = OrderState.PARTIALLY_FILLED if kept.remaining else OrderState.FILLED
        if kept.order.role.exit:
            self._exited(kept)
        else:
            self._entered(kept)

    def _entered(self, kept: Kept) -> None:
        ended = kept.state in FINAL
        for each in kept.exits:
            if kept.filled and (ended or self.eager):
                closed = sum((other.filled for other in kept.exits if other is not each), ZERO)
                each.quantity = kept.filled - closed
                each.state = OrderState.OPEN if each.state is OrderState.HELD else each.state
            elif ended:
                each.state = OrderState.CANCELLED

    def _exited(self, kept: Kept) -> None:
        entry = self.orders[kept.order.parent or ""]
        for other in entry.exits:
            if other is not kept and other.working:
                if kept.state is OrderState.FILLED:
                    other.state = OrderState.CANCELLED
                else:
                    other.quantity = other.filled + kept.remaining
        if kept.state is OrderState.FILLED and entry.working:
            self.end(entry, OrderState.CANCELLED)

    def end(self, kept: Kept, state: OrderState) -> None:
        """End an order, and its exits that have nothing to close."""
        if kept.state in FINAL:
            return
        kept.state = state
        if not kept.order.role.exit:
            self._entered(kept)

    def end_something(self) -> None:
        """The broker ends an order by itself."""
        working = [each for each in self.everything() if each.working]
        if working:
            self.end(self._chance.choice(working), self._chance.choice((OrderState.CANCELLED, OrderState.EXPIRED)))

    def report(self, our_id: str) -> OrderReport | None:
        """Returns the report of an order."""
        kept = self.find(our_id)
        if kept is None:
            return None
        exits = tuple((str(each.order.role), self._told(each)) for each in kept.exits)
        return replace(self._told(kept), exits=exits)

    def _told(self, kept: Kept) -> OrderReport:
        known = len(kept.executions)
        # A cancelled order is reported with all of its fills; before that, and if it is filled, the newest may be missing.
        if self.late and not self.calm and kept.told < known and kept.state not in FINAL - {OrderState.FILLED}:
            known, kept.told = kept.told, known
        else:
            kept.told = known
        reason = "the broker ended it" if kept.state in FINAL - {OrderState.FILLED} else None
        return OrderReport(kept.broker_id, kept.state, tuple(kept.executions[:known]), reason)

    def _number(self, kind: str) -> str:
        self._count += 1
        return f"{kind}{self._count}"
