"""A view of an earlier time returns for every query exactly what a view of the present returned at that time.

Everything is written through the journal in a random order of a fixed seed, with checkpoints every few entries
and a clock that is sometimes set back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest
from sqlalchemy import Connection, delete, insert, select

from openbell.desk.orders.books import Books
from openbell.stores.records import alerts, checkpoints, decisions, orders, switches
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import pushes
from openbell.trading.accounts import Account
from openbell.trading.alerts import Alert, AlertFilter, AlertState, Type
from openbell.trading.fills import fill_of
from openbell.trading.orders import Order, OrderState, Side
from tests.desk.trading.memory_databases import Memory, spelled
from tests.trading.samples import START, order

ME, YOU = "me", "you"
DAY = START // 86400 * 86400
ACCOUNTS = {
    name: Account(name, "paper", ME, Decimal(1000 * number), None, float(START))
    for number, name in enumerate(("a", "b"), 1)
}
QUESTIONS: dict[str, Callable[[View, Account], object]] = {
    "account": lambda view, account: orders.account(view, account.name),
    "book": lambda view, account: Books().book(view, account),
    "working orders": lambda view, account: sorted(Books().orders(view, account), key=lambda each: each.id),
    "start of the day": lambda view, account: Books().day_start(view, account, DAY + 600),
    "orders": lambda view, account: orders.listing(view, account.name, ME, 3, 0, open_only=False),
    "older orders": lambda view, account: orders.listing(view, account.name, ME, 5, 2, open_only=False),
    "open orders": lambda view, account: orders.listing(view, account.name, ME, 3, 1, open_only=True),
    "decisions": lambda view, _: decisions.recent(view, ME, 3, 0, None, None),
    "halted": lambda view, _: switches.halted(view),
    "alerts": lambda view, _: alerts.active(view, ME),
    "notifications": lambda view, _: alerts.notifications(view, ME, 0, 50),
    "new notifications": lambda view, _: alerts.count_after(view, ME, 3),
    "cursors": lambda view, _: alerts.cursors_of(view, ME),
    "subscription": lambda view, _: alerts.subscription(view, ME),
}


class Writer:
    """Writes one thing after another."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.orders: dict[str, Order] = {}
        self.alerts: dict[str, Alert] = {}
        self.accounts: set[str] = set()
        self._count = 0

    def write(self, journal: Journal) -> None:
        """Write one or two things."""
        deeds = (
            self._order,
            self._order,
            self._fill,
            self._fill,
            self._end,
            self._decide,
            self._switch,
            self._alert,
            self._fire,
        )
        others = (self._read, self._subscribe, self._unsubscribe)
        for _ in range(self.chance.choice((1, 1, 2))):
            self.chance.choice((*deeds, *others))(journal)

    def _name(self) -> str:
        self._count += 1
        return f"{self.chance.randrange(10)}-{self._count}"

    def _order(self, journal: Journal) -> None:
        account = self.chance.choice(sorted(ACCOUNTS))
        if account not in self.accounts:
            self.accounts.add(account)
            journal.put("account", replace(ACCOUNTS[account], created_at=journal.at), new=True)
        side = self.chance.choice((Side.BUY, Side.SELL))
        new = replace(
            order(self._name(), side, "10", placed_at=journal.at, updated_at=journal.at),
            account=account,
            principal=self.chance.choice((ME, ME, YOU)),
            symbol=self.chance.choice(("BTC/USD", "ETH/USD")),
        )
        self.orders[new.id] = new
        journal.put("order", new, new=True)

    def _working(self) -> list[Order]:
        return [each for each in self.orders.values() if not each.final]

    def _fill(self, journal: Journal) -> None:
        if not self._working():
            return
        chosen = self.chance.choice(self._working())
        quantity, price = Decimal(self.chance.choice((2, 5))), Decimal(self.chance.randrange(90, 110))
        quantity = min(quantity, chosen.remaining)
        made = fill_of(chosen, self._name(), quantity, price, journal.at - self.chance.choice((0, 30, 700)))
        changed = chosen.with_fill(quantity, price, Decimal(0), journal.at)
        self.orders[chosen.id] = changed
        journal.put("fill", made, new=True)
        journal.put("order", changed)

    def _end(self, journal: Journal) -> None:
        if self._working():
            ended = self.chance.choice(self._working()).to(OrderState.CANCELLED, journal.at, "a test")
            self.orders[ended.id] = ended
            journal.put("order", ended)

    def _decide(self, journal: Journal) -> None:
        row = {"id": self._name(), "principal": ME, "symbol": "BTC/USD", "action": "hold", "confidence": 0.5}
        more = {"opportunity_score": None, "reasoning": "x", "tool_calls": None, "created_at": journal.at}
        journal.put("decision", {**row, **more}, new=True)

    def _switch(self, journal: Journal) -> None:
        journal.put("switch", {"name": switches.HALT, "reason": self.chance.choice((None, "a test")), "at": journal.at})

    def _alert(self, journal: Journal) -> None:
        who = self.chance.choice((ME, YOU))
        made = Alert(self._name(), who, "BTC/USD", "btc", "1m", Type.PRICE_ABOVE, journal.at, Decimal(5))
        self.alerts[made.id] = made
        journal.put("alert", made, new=True)

    def _fire(self, journal: Journal) -> None:
        active = [each for each in self.alerts.values() if each.state is AlertState.ACTIVE]
        if active:
            fired = replace(self.chance.choice(active), state=AlertState.FIRED, updated_at=journal.at)
            self.alerts[fired.id] = fired
            cursor = journal.put("alert", fired)
            alerts.deliver(journal.view, fired, cursor, {"id": fired.id}, journal.at)
            queued = alerts.Notification(cursor, {"id": fired.id})
            alerts.enqueue(journal.view, fired.principal, fired.id, queued, journal.at)

    def _read(self, journal: Journal) -> None:
        alerts.move_cursors(journal, ME, seen=self.chance.randrange(80), pushed=self.chance.randrange(80))

    def _subscribe(self, journal: Journal) -> None:
        alerts.subscribe(journal, ME, AlertFilter(frozenset({self.chance.choice(("BTC/USD", "ETH/USD"))}), frozenset()))

    def _unsubscribe(self, journal: Journal) -> None:
        # `unsubscribe` deletes queued pushes for good; without that the pushes of every time can be queried.
        kept = journal.view.execute(select(pushes)).mappings().all()
        alerts.unsubscribe(journal, ME)
        journal.view.execute(delete(pushes))
        if kept:
            journal.view.execute(insert(pushes), [dict(row) for row in kept])


@pytest.fixture(scope="module")
def memory() -> Memory:
    return Memory()


def asked(memory: Memory, question: str, account: Account, until: float | None = None) -> str:
    """The result of a query in a view, as JSON."""
    return memory.transaction(lambda c: spelled(QUESTIONS[question](View(c, until), account)), writing=False)


@pytest.mark.parametrize("every", [3, 7, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_an_earlier_view_returns_what_the_present_returned_then(
    seed: int, every: int, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", every)
    memory.empty()
    writer, at = Writer(seed), float(START)
    given: list[tuple[float, int, str, str, str]] = []
    for _ in range(40):
        at = round(at + writer.chance.choice((0.001, 5.0, 5.0, 45.0, 45.0, 45.0, -2.0)), 3)

        def work(connection: Connection, at: float = at) -> None:
            journal = Journal(connection, at)
            writer.write(journal)
            journal.finish()
            checkpoints.write_due(journal.view)

        memory.transaction(work, writing=True)
        for name, account in ACCOUNTS.items():
            for question in writer.chance.sample(sorted(QUESTIONS), 4):
                text = asked(memory, question, account)
                given.append((at, memory.seq, name, question, text))
    compared = 0
    for moment, seq, name, question, text in given:
        other = "SELECT 1 FROM ledger WHERE (seq > ? AND at <= ?) OR (seq <= ? AND at > ?) LIMIT 1"
        if memory.one(other, seq, moment, seq, moment):
            continue  # the clock was set back, so that other entries were written by that time
        compared += 1
        then = asked(memory, question, ACCOUNTS[name], moment)
        assert then == text, (question, name, moment)
    assert compared > 80


@pytest.mark.parametrize("every", [1, 2, 2000])
def test_the_time_of_an_entry_decides_not_its_place_when_the_clock_was_set_back(
    every: int, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", every)
    memory.empty()

    def place(name: str, at: float) -> None:
        def work(connection: Connection) -> None:
            journal = Journal(connection, at)
            if name == "first":
                journal.put("account", ACCOUNTS["a"], new=True)
            placed = replace(order(name, placed_at=at, updated_at=at), account="a")
            journal.put("order", placed, new=True)
            journal.put("fill", fill_of(placed, f"{name}-1", Decimal(1), Decimal(5), at), new=True)
            journal.finish()
            checkpoints.write_due(journal.view)

        memory.transaction(work, writing=True)

    place("first", START + 10.0)
    place("later", START + 60.0)
    place("set back", START + 55.0)
    place("last", START + 70.0)

    def at(until: float) -> tuple[set[str], int]:
        def work(connection: Connection) -> tuple[set[str], int]:
            view, books = View(connection, until), Books()
            return {each.id for each in books.orders(view, ACCOUNTS["a"])}, books.book(view, ACCOUNTS["a"]).count

        return memory.transaction(work, writing=False)

    assert at(START + 57.0) == ({"first", "set back"}, 2)
    assert at(START + 60.0) == ({"first", "set back", "later"}, 3)
    assert at(START + 70.0) == ({"first", "set back", "later", "last"}, 4)
