"""A desk of an earlier clock over a long ledger: how long get_positions takes, over stdio, as a client meets it.

The ledger has a million entries of one account: real rows in a real chain, with the checkpoints that an engine writes.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.client import OPENBELL, Client

from measure import row, rows
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.market.clock import FixedClock, iso
from openbell.stores.records import checkpoints
from openbell.stores.records.journal import Journal
from openbell.trading.accounts import Account
from openbell.trading.fills import fill_of
from openbell.trading.orders import Force, Order, OrderKind, OrderState, Side

ENTRIES = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
SYMBOLS = ("BTC/USD", "AAPL", "MSFT")
SPAN = 200 * 86400
END = int(time.time()) // 86400 * 86400
PRICE = Decimal(100)


def deeds(journal: Journal, first: int, last: int) -> None:
    """Round trips: each order is written, filled and written again."""
    for number in range(first, last):
        at = END - SPAN + SPAN * number / (ENTRIES / 3)
        side = Side.BUY if number // 3 % 2 == 0 else Side.SELL
        symbol = SYMBOLS[number % 3]
        order = Order(
            f"o{number}", "paper", "local", symbol, side, OrderKind.MARKET, Decimal(1), Decimal(1), Force.GTC, at
        )
        journal.at = at
        opened = order.to(OrderState.OPEN, at)
        journal.put("order", opened, new=True)
        journal.put("fill", fill_of(opened, f"f{number}", Decimal(1), PRICE, at), new=True)
        journal.put("order", opened.with_fill(Decimal(1), PRICE, Decimal(0), at))


async def build(home: Path) -> None:
    """The ledger, and its checkpoints as the engine writes them."""
    desk = Desk(load({"OPENBELL_HOME": str(home), "OPENBELL_TRADE": "1"}))
    desk.clock = FixedClock(END - SPAN)
    records = desk.trading.records
    await records.write(
        lambda j: j.put("account", Account("paper", "paper", "local", Decimal(10**9), None, j.at), new=True)
    )
    step, total = 10_000, ENTRIES // 3
    for first in range(0, total, step):
        await records.write(lambda j, first=first: deeds(j, first, min(first + step, total)))  # type: ignore[misc]
    began = time.perf_counter()
    while await records.read(checkpoints.due):
        await records.write(lambda journal: checkpoints.write_due(journal.view, 50))
    print(f"checkpoints of {ENTRIES:,} entries: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    await desk.close()


def ask(home: Path, moment: float) -> tuple[float, float]:
    """The first answer of a process, and the median of the next: ms."""
    with Client(home, command=[*OPENBELL, "mcp", "portfolio", "--as-of", iso(moment)]) as client:
        client.initialize()
        spent = []
        for _ in range(51):
            began = time.perf_counter()
            answer = client.call("get_positions")
            spent.append((time.perf_counter() - began) * 1000)
            assert answer["result"]["isError"] is False, answer
        return spent[0], statistics.median(spent[1:])


def main() -> int:
    """Measure and print."""
    with TemporaryDirectory() as folder:
        home = Path(folder)
        asyncio.run(build(home))
        worst_first, worst = 0.0, 0.0
        for share in (0.1, 0.5, 0.9):
            first, warm = ask(home, END - SPAN + SPAN * share)
            worst_first, worst = max(worst_first, first), max(worst, warm)
        row(f"get_positions at an earlier clock, {ENTRIES:,} entries, warm", f"{worst:.1f} ms", "≤ 50 ms", worst <= 50)
        row("  the first of a process", f"{worst_first:.1f} ms", "none", True)
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
