"""What an account held when a day began: the minute that ends at midnight belongs to the day before."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from openbell.desk.orders.books import Books, DayStart
from openbell.stores.records.journal import Journal
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import Account
from openbell.trading.amounts import ZERO
from openbell.trading.orders import Side
from tests.desk.trading.memory_databases import Memory
from tests.trading.samples import D, fill

MIDNIGHT = 1_757_116_800


@pytest.mark.parametrize("until", [None, MIDNIGHT + 120.0])
def test_a_fill_of_the_last_minute_counts_as_of_the_day_before(until: float | None) -> None:
    """`advance` counts it so, and a process that starts after midnight must find the same day's start."""
    account = Account("paper", "paper", "me", D(1000), None, 1.0)
    last = fill(Side.BUY, "2", "100", "1", at=float(MIDNIGHT), bar=MIDNIGHT - 60)
    first = fill(Side.BUY, "3", "100", "1", id="a-2", at=MIDNIGHT + 60.0, bar=MIDNIGHT)

    def write(connection: Connection) -> None:
        journal = Journal(connection, MIDNIGHT + 61.0)
        journal.put("account", account)
        journal.put("fill", last)
        journal.put("fill", first)
        journal.finish()

    memory = Memory()
    memory.transaction(write, writing=True)

    def read(connection: Connection) -> DayStart:
        return Books().day_start(View(connection, until), account, MIDNIGHT)

    found = memory.transaction(read, writing=False)
    assert found == DayStart(MIDNIGHT, D(1000) + last.cash, {"BTC/USD": D(2)})
    assert found.equity({"BTC/USD": ZERO}) == D(799)
