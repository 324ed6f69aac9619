"""What must be so at the end of every schedule, whatever happened on the way."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from openbell.desk.trading.accounts import OPERATOR
from openbell.desk.trading.orders import TWIN_SECONDS
from openbell.market.bars import MINUTE
from openbell.stores.records import orders as queries
from openbell.stores.records.verify import entries, faults
from openbell.stores.records.view import View
from openbell.trading import amounts, risk
from openbell.trading.amounts import ZERO
from openbell.trading.book import Book
from openbell.trading.fills import Fill
from openbell.trading.ledger import Entry
from openbell.trading.orders import EXPOSED, FINAL, MOVES, Kind, Order, Side, State
from openbell.trading.risk import Proposal, Situation
from openbell.trading.rows import from_row
from tests.desk.trading.simulation import CASH, LIMITS, PRICES, World

_DAY = 86400
_MONEY = {"filled", "paid", "fees", "updated_at", "broker_id", "opening"}
"""What a late fill may change of an order that has ended."""


class Told:
    """The ledger, told from its beginning by an accountant who knows nothing else."""

    def __init__(self, ledger: list[Entry]) -> None:
        self.orders: dict[str, Order] = {}
        self.first: dict[str, Order] = {}
        self.fills: list[Fill] = []
        self.book = Book(CASH)
        self.halted: str | None = None
        self.faults: list[str] = []
        self._fresh: set[str] = set()
        """Orders that have a fill which their row does not show yet."""
        for entry in ledger:
            body = json.loads(entry.body)
            if entry.kind == "switch":
                self.halted = body["reason"]
            elif entry.kind == "fill":
                self._fill(from_row(Fill, body))
            elif entry.kind == "order":
                self._order(from_row(Order, body))

    def _fill(self, fill: Fill) -> None:
        order = self.orders.get(fill.order_id)
        if order is None:
            self.faults.append(f"fill {fill.id} has no order")
            return
        if self.halted and fill.bar is not None:
            after = self.book.quantity(fill.symbol) + fill.signed
            if abs(after) > abs(self.book.quantity(fill.symbol)):
                self.faults.append(f"fill {fill.id} opened while trading was halted")
        self.fills.append(fill)
        self.book = self.book.after(fill)
        self._fresh.add(fill.order_id)

    def _order(self, order: Order) -> None:
        before = self.orders.get(order.id)
        if before is None:
            self.first[order.id] = order
            if order.state not in {State.PENDING, State.OPEN, State.HELD, State.REJECTED}:
                self.faults.append(f"{order.id} began as {order.state}")
            if order.role.exit and order.state is not State.HELD:
                self.faults.append(f"the exit {order.id} began as {order.state}")
        elif order.state is not before.state and order.state not in MOVES[before.state]:
            self.faults.append(f"{order.id} went from {before.state} to {order.state}")
        elif before.state in FINAL and replace(order, **{name: getattr(before, name) for name in _MONEY}) != before:
            self.faults.append(f"{order.id} has ended as {before.state} and was changed")
        elif before.state in FINAL and order.id not in self._fresh:
            self.faults.append(f"{order.id} has ended as {before.state} and was written again without a fill")
        if before is not None and order.filled < before.filled:
            self.faults.append(f"{order.id} has lost fills")
        self._fresh.discard(order.id)
        self.orders[order.id] = order


def violations(world: World) -> Iterator[str]:
    """Everything that is wrong."""
    yield from world.surprises
    yield from world.vendor.violations
    with world.memory.engine.connect() as connection:
        ledger = list(entries(connection))
        for fault in faults(connection, (), world.process.records.head.ends()):
            yield f"ledger: {fault.reason}"
    told = Told(ledger)
    yield from told.faults
    yield from _judged(ledger)
    yield from _asked(world, told)
    yield from _twins(world, told)
    yield from _books(world, told)
    yield from (_on_paper(world, told) if world.inside else _at_the_broker(world, told))


def _judged(ledger: list[Entry]) -> Iterator[str]:
    """Every verdict is the one that the gate's rules give in the situation that stood in the ledger at that moment."""
    orders: dict[str, Order] = {}
    fills: list[Fill] = []
    book, halted = Book(CASH), None
    judged: tuple[Entry, dict[str, Any], Situation] | None = None
    for entry in ledger:
        body = json.loads(entry.body)
        if entry.kind == "switch":
            halted = body["reason"]
        elif entry.kind == "fill":
            fills.append(from_row(Fill, body))
            book = book.after(fills[-1])
        elif entry.kind == "verdict":
            waiting = tuple(each for each in orders.values() if not each.final)
            day = entry.at // _DAY * _DAY
            situation = Situation(book, PRICES, waiting, _worth_at(day, fills), halted)
            judged = (entry, body, situation)
        elif entry.kind == "order":
            order = from_row(Order, body)
            if judged and order.id == judged[1]["order_id"]:
                yield from _judged_again(order, judged[1], judged[2])
                judged = None
            elif order.id not in orders and not order.role.exit:
                yield f"{order.id} was written without a verdict"
            orders[order.id] = order
    if judged:
        yield f"the verdict {judged[0].key} has no order"


def _judged_again(order: Order, body: dict[str, Any], situation: Situation) -> Iterator[str]:
    price = order.limit_price or order.stop_price
    proposal = Proposal(order.symbol, order.side, order.quantity, price, order.limit_price is not None)
    verdict = risk.judge(proposal, situation, LIMITS)
    if verdict.valid != body["valid"] or amounts.text(verdict.opening) != body["opening"]:
        yield f"{order.id} was judged {body['valid']} ({body['rule']}), and the ledger says {verdict}"
    if (order.state is State.REJECTED) == verdict.valid:
        yield f"{order.id} is {order.state} after a verdict of {verdict.valid}"
    if not verdict.valid or not verdict.opening:
        return
    # The same limits once more, added up by hand.
    with amounts.exact():
        equity = situation.book.cash + sum(p.quantity * PRICES[p.symbol] for p in situation.book.positions.values())
        taken, here = ZERO, ZERO
        for each in [each for each in situation.orders if each.state in EXPOSED and not each.role.exit]:
            worth = each.remaining_opening * _at_worst(each)
            taken, here = taken + worth, here + (worth if each.symbol == order.symbol else ZERO)
        for held in situation.book.positions.values():
            left = abs(held.quantity)
            if held.symbol == order.symbol:
                left -= risk.reducible(order.side, order.symbol, situation)
                here += left * PRICES[held.symbol]
            taken += left * PRICES[held.symbol]
        worth = verdict.opening * _at_worst(order)
        if taken + worth > equity * LIMITS.leverage:
            yield f"{order.id} makes {taken + worth} of an equity of {equity}"
        if worth > LIMITS.order_share * equity or here + worth > LIMITS.symbol_share * equity:
            yield f"{order.id} of {worth} is too large for {equity}"
        if situation.halted:
            yield f"{order.id} opens while trading is halted"


def _at_worst(order: Order) -> Decimal:
    price, mark = order.limit_price or order.stop_price, PRICES[order.symbol]
    if price is None:
        return mark
    return price if order.side is Side.BUY and order.limit_price is not None else max(price, mark)


def _worth_at(day: float, fills: list[Fill]) -> Decimal:
    with amounts.exact():
        before = [fill for fill in fills if fill.at < day]
        return CASH + sum((fill.cash + fill.signed * PRICES[fill.symbol] for fill in before), ZERO)


def _asked(world: World, told: Told) -> Iterator[str]:
    """Whoever was answered was told the truth, and the same truth each time."""
    by_key: dict[str, set[str]] = defaultdict(set)
    for order in told.orders.values():
        if order.client_order_id:
            by_key[order.client_order_id].add(order.id)
    for key, ids in by_key.items():
        if len(ids) > 1:
            yield f"{key} made {ids}"
    digests = {digest for (digest,) in world.memory.raw.execute("SELECT digest FROM requests")}
    for asked in world.asked:
        answer = asked.answer
        if answer is None:
            continue
        if answer.id not in told.orders:
            yield f"{answer.id} was acknowledged and is not in the records"
        elif asked.request.digest() not in digests:
            yield f"{answer.id} was acknowledged without its request"
        elif (own := asked.request.client_order_id) and by_key[own] != {answer.id}:
            yield f"{own} was answered with {answer.id} and is {by_key[own]}"
    for order_id, state in world.cancelled.items():
        now = told.orders[order_id].state
        if now is State.CANCELLING or (state is State.CANCELLED and now is not State.CANCELLED):
            yield f"{order_id} was cancelled ({state}) and is {now}"


def _twins(world: World, told: Told) -> Iterator[str]:
    """Without an id the same order is not taken twice within seconds, unless the first was rejected."""
    last: dict[str, tuple[float, str]] = {}
    rows = world.memory.raw.execute(
        "SELECT digest, received, order_id FROM requests ORDER BY received, rowid"
    ).fetchall()
    for digest, received, order_id in rows:
        order = told.orders[order_id]
        if order.client_order_id is None:
            before = last.get(digest)
            if before and received - before[0] < TWIN_SECONDS:
                yield f"{order_id} repeats {before[1]} after {received - before[0]:.1f} s"
        if order.state is not State.REJECTED:
            last[digest] = received, order_id


def _books(world: World, told: Told) -> Iterator[str]:
    """Cash and positions are the fills and nothing else; every order shows its own."""
    book = told.book
    with world.memory.engine.connect() as connection:
        view = View(connection)
        if queries.account(view, "main") is not None:
            kept = world.process.books.book(view, world.process.accounts.open(view, OPERATOR))
            if kept != book:
                yield f"the book is {kept}, the ledger makes {book}"
    with amounts.exact():
        cash = CASH - sum((f.signed * f.price + f.fee for f in told.fills), ZERO)
        if book.cash != cash:
            yield f"cash is {book.cash} and should be {cash}"
        if (book.cash + sum((p.cost for p in book.positions.values()), ZERO)) != CASH + book.realised - book.fees:
            yield "cash, cost, profit and fees do not add up"
        filled: Counter[str] = Counter()
        paid: dict[str, Decimal] = defaultdict(lambda: ZERO)
        for fill in told.fills:
            filled[fill.order_id] += fill.quantity  # type: ignore[assignment]
            paid[fill.order_id] += fill.quantity * fill.price
    if len({fill.id for fill in told.fills}) != len(told.fills):
        yield "a fill is counted twice"
    for order in told.orders.values():
        if (order.filled, order.paid) != (filled.get(order.id, ZERO), paid[order.id]):
            yield f"{order.id} shows {order.filled} and has fills of {filled.get(order.id, ZERO)}"
        if order.state in {State.PENDING, State.UNKNOWN}:
            yield f"{order.id} is still {order.state}"


def _at_the_broker(world: World, told: Told) -> Iterator[str]:
    """Our records and the broker's are the same."""
    vendor = world.vendor
    counted = {fill.id: fill for fill in told.fills}
    keys: Counter[str] = Counter()
    executions = 0
    for kept in vendor.everything():
        name = kept.order.id
        order = told.orders.get(name)
        if order is None:
            yield f"the broker has {name}, and the records have not"
            continue
        if not order.role.exit and order.client_order_id:
            keys[order.client_order_id] += 1
        # An exit that its sibling left nothing to do has done all of it, or was cancelled: both are right.
        ended = order.role.exit and order.final and kept.state in FINAL
        if order.state is not kept.state and not ended:
            yield f"{name} is {order.state} and at the broker {kept.state}"
        for execution in kept.executions:
            executions += 1
            fill = counted.get(f"{name}-{execution.id}")
            expected = (execution.quantity, execution.price, execution.fee, execution.at)
            if fill is None or (fill.quantity, fill.price, fill.fee, fill.at) != expected:
                yield f"execution {execution.id} of {name} is counted as {fill}"
    if executions != len(told.fills):
        yield f"{executions} executions make {len(told.fills)} fills"
    for key, times in keys.items():
        if times > 1:
            yield f"{key} made {times} orders at the broker"
    positions: dict[str, Decimal] = defaultdict(lambda: ZERO)
    for kept in vendor.everything():
        positions[kept.order.symbol] += kept.filled * kept.order.side.sign
    if {k: v for k, v in positions.items() if v} != {p.symbol: p.quantity for p in told.book.positions.values()}:
        yield "positions are not those of the broker's fills"
    yield from _not_at_the_broker(world, told)
    if told.halted:
        for kept in vendor.orders.values():
            if kept.working and told.orders[kept.order.id].remaining_opening:
                yield f"{kept.order.id} works at the broker while trading is halted"


def _not_at_the_broker(world: World, told: Told) -> Iterator[str]:
    vendor = world.vendor
    for order in told.orders.values():
        if order.role.exit or order.id in vendor.orders:
            continue
        if order.state not in {State.REJECTED, State.LOST} or not order.reason:
            yield f"{order.id} is {order.state} ({order.reason}), and the broker never had it"
        unheard = vendor.outcomes.get(order.id) in {"it never arrived", "it arrives later", "the answer was lost"}
        excused = unheard or world.flaky or order.id in world.orphans
        if order.state is State.LOST and not excused:
            yield f"{order.id} was lost ({vendor.outcomes.get(order.id, 'never sent')}), and nobody had died"
    for order in told.orders.values():
        if order.role.exit and not order.final:
            entry = told.orders[order.parent or ""]
            if entry.final and not entry.filled:
                yield f"the exit {order.id} waits for an entry that has ended"


def _on_paper(world: World, told: Told) -> Iterator[str]:
    """Every fill is what its bar allows, and nothing that a bar should have filled is left."""
    assert world.bars
    slip = world.costs.slippage
    taken: dict[tuple[str, int], Decimal] = defaultdict(lambda: ZERO)
    held: dict[str, Decimal] = defaultdict(lambda: ZERO)
    for fill in told.fills:
        first, order = told.first[fill.order_id], told.orders[fill.order_id]
        bars = world.bars.bars[fill.symbol]
        assert fill.bar is not None
        index = int(bars.time.searchsorted(fill.bar))
        if index >= len(bars) or bars.time[index] != fill.bar:
            yield f"fill {fill.id} has no bar"
            continue
        if fill.bar < first.placed_at:
            yield f"fill {fill.id} is of a bar that opened before its order was placed"
        low, high = (amounts.of_bar(value) for value in (bars.low[index], bars.high[index]))
        if not low * (1 - slip) - Decimal("1e-9") <= fill.price <= high * (1 + slip) + Decimal("1e-9"):
            yield f"fill {fill.id} at {fill.price} outside {low} to {high}"
        limit = order.limit_price
        if limit is not None and (fill.price > limit if order.side is Side.BUY else fill.price < limit):
            yield f"fill {fill.id} at {fill.price} is worse than its limit {limit}"
        before = held[fill.symbol]
        held[fill.symbol] += fill.signed
        if not first.opening and (before * fill.signed >= 0 or abs(fill.signed) > abs(before)):
            yield f"{order.id} may only reduce, and took {before} to {held[fill.symbol]}"
        taken[fill.symbol, fill.bar] += fill.quantity
        if taken[fill.symbol, fill.bar] > amounts.of_bar(bars.volume[index]) * world.costs.volume_share:
            yield f"more was had of {fill.symbol} at {fill.bar} than its volume allows"
    until = int(world.clock.at // MINUTE * MINUTE)
    for order in told.orders.values():
        yield from _left_over(world, told, order, until)
        if order.role.exit and not order.final:
            entry = told.orders[order.parent or ""]
            if entry.final and not entry.filled:
                yield f"the exit {order.id} waits for an entry that has ended"


def _left_over(world: World, told: Told, order: Order, until: int) -> Iterator[str]:
    """An order that is open although its time is over, or a bar has reached it."""
    assert world.bars
    if order.final or order.state is State.HELD:
        return
    if order.expires_at is not None and order.expires_at <= until:
        yield f"{order.id} should have expired"
    if told.halted and order.remaining_opening:
        yield f"{order.id} rests while trading is halted"
    bars = world.bars.bars[order.symbol].between(told.first[order.id].placed_at, until)
    if world.bars.thin or order.role.exit or not len(bars):
        return
    level = float(order.limit_price or order.stop_price or 0)
    buying = order.side is Side.BUY
    if order.kind is Kind.MARKET:
        reached = True
    elif order.kind is Kind.LIMIT:
        reached = bool((bars.low < level).any() if buying else (bars.high > level).any())
    else:
        reached = bool((bars.high >= level).any() if buying else (bars.low <= level).any())
    if reached:
        yield f"{order.id} ({order.kind}) is {order.state}, and a bar has reached it"
