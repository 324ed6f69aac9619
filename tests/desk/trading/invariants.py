"""What must hold at the end of every schedule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal

from openbell.desk.orders.service import TWIN_SECONDS
from openbell.desk.settings.principals import OPERATOR
from openbell.stores.records import checkpoints
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import checkpoints as kept_checkpoints
from openbell.stores.records.verify import faults
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.orders import FINAL, OrderState
from tests.desk.trading.memory_databases import Place
from tests.desk.trading.rejudging import Rejudging
from tests.desk.trading.rematching import Case, case_of, mismatches
from tests.desk.trading.replayed_ledger import ReplayedLedger
from tests.desk.trading.seats import LIMITS, Seat
from tests.desk.trading.simulation import World


def violations(world: World) -> Iterator[str]:
    """Yields every violation."""
    yield from world.surprises
    yield from world.vendor.violations
    case = case_of(world, world.clock.closed)
    replayed = case.replayed
    yield from _ledger(world.place, replayed)
    yield from Rejudging(
        replayed.ledger, world.script, world.judgements, world.outages, on_paper=world.on_paper
    ).violations()
    yield from _asked(world, replayed)
    yield from _twins(world, replayed)
    for seat in world.process.seats.values():
        yield from _books(world.place, seat, replayed)
    yield from (_on_paper(case) if world.on_paper else _at_the_broker(world, replayed))
    for scenario in world.scenarios.values():
        replayed = ReplayedLedger.of(scenario.place.memory)
        for fault in (
            *_ledger(scenario.place, replayed),
            *Rejudging(replayed.ledger, world.script, scenario.judgements, [], on_paper=True).violations(),
            *_books(scenario.place, scenario.seat, replayed),
            *_on_paper(Case(replayed, world.script, scenario.clock.closed)),
        ):
            yield f"scenario {scenario.name}: {fault}"


def _ledger(place: Place, replayed: ReplayedLedger) -> Iterator[str]:
    """The ledger is valid, tables and checkpoints agree with it, and its head is stored."""
    with place.memory.engine.connect() as connection:
        for fault in faults(connection, (), place.ends()):
            yield f"ledger: {fault.reason}"
        rows = connection.execute(kept_checkpoints.select()).all()
    yield from replayed.faults
    for row in rows[-3:]:
        then = ReplayedLedger(replayed.ledger[: row.seq])
        fold = checkpoints.Fold.from_row(row.body)
        working = {order.id for order in then.orders.values() if order.account == row.account and not order.final}
        if fold.book != then.books[row.account] or set(fold.working) != working:
            yield f"the checkpoint of {row.account} at {row.seq} is {fold}, the ledger makes {then.books[row.account]}"
        if row.at < max(entry.at for entry in replayed.ledger[: row.seq]):
            yield f"the checkpoint of {row.account} at {row.seq} is older than an entry that it counts"


def _asked(world: World, replayed: ReplayedLedger) -> Iterator[str]:
    """Every answer to a caller agrees with the ledger, and repeated requests get the same answer."""
    by_key: dict[tuple[str, str], set[str]] = defaultdict(set)
    for order in replayed.orders.values():
        if order.client_order_id:
            by_key[order.account, order.client_order_id].add(order.id)
    for key, ids in by_key.items():
        if len(ids) > 1:
            yield f"{key} made {ids}"
    digests = {digest for (digest,) in world.memory.raw.execute("SELECT digest FROM requests")}
    for asked in world.asked:
        answer = asked.answer
        if answer is None:
            continue
        if answer.id not in replayed.orders or replayed.orders[answer.id].account != asked.account:
            yield f"{answer.id} was acknowledged and is not in the records of {asked.account}"
        elif asked.request.digest() not in digests:
            yield f"{answer.id} was acknowledged without its request"
        elif (own := asked.request.client_order_id) and by_key[asked.account, own] != {answer.id}:
            yield f"{own} was answered with {answer.id} and is {by_key[asked.account, own]}"
    for order_id, state in world.cancelled.items():
        now = replayed.orders[order_id].state
        if now is OrderState.CANCELLING or (state is OrderState.CANCELLED and now is not OrderState.CANCELLED):
            yield f"{order_id} was cancelled ({state}) and is {now}"


def _twins(world: World, replayed: ReplayedLedger) -> Iterator[str]:
    """Without an id an equal order is not accepted twice within seconds, unless the first was rejected."""
    last: dict[tuple[str, str], tuple[float, str]] = {}
    rows = world.memory.raw.execute("SELECT digest, received, order_id FROM requests ORDER BY rowid").fetchall()
    for digest, received, order_id in rows:
        order = replayed.orders[order_id]
        if order.client_order_id is None:
            before = last.get((order.account, digest))
            if before and abs(received - before[0]) < TWIN_SECONDS:
                yield f"{order_id} repeats {before[1]} after {received - before[0]:.1f} s"
        if order.state is not OrderState.REJECTED:
            last[order.account, digest] = received, order_id


def _books(place: Place, seat: Seat, replayed: ReplayedLedger) -> Iterator[str]:
    """Cash and positions of an account are the sum of its fills; every order shows the sum of its own fills."""
    name = seat.account
    if name not in replayed.books:
        return
    book, begun = replayed.books[name], replayed.cash[name]
    with place.memory.engine.connect() as connection:
        view = View(connection)
        kept = seat.books.book(view, seat.accounts.open(view, OPERATOR))
        if kept != book:
            yield f"the book of {name} is {kept}, the ledger makes {book}"
    fills = [fill for fill in replayed.fills if fill.account == name]
    with amounts.exact():
        cash = begun - sum((f.signed * f.price + f.fee for f in fills), ZERO)
        if book.cash != cash:
            yield f"cash of {name} is {book.cash} and should be {cash}"
        if (book.cash + sum((p.cost for p in book.positions.values()), ZERO)) != begun + book.realised - book.fees:
            yield f"cash, cost, profit and fees of {name} do not add up"
        filled: Counter[str] = Counter()
        paid: dict[str, Decimal] = defaultdict(lambda: ZERO)
        for fill in fills:
            filled[fill.order_id] += fill.quantity  # type: ignore[assignment]
            paid[fill.order_id] += fill.quantity * fill.price
    if len({fill.id for fill in fills}) != len(fills):
        yield "a fill is counted twice"
    for order in replayed.orders.values():
        if order.account != name:
            continue
        if (order.filled, order.paid) != (filled.get(order.id, ZERO), paid[order.id]):
            yield f"{order.id} shows {order.filled} and has fills of {filled.get(order.id, ZERO)}"
        if order.state in {OrderState.PENDING, OrderState.UNKNOWN}:
            yield f"{order.id} is still {order.state}"


def _at_the_broker(world: World, replayed: ReplayedLedger) -> Iterator[str]:
    """Our records agree with the broker's."""
    vendor = world.vendor
    counted = {fill.id: fill for fill in replayed.fills}
    keys: Counter[str] = Counter()
    executions = 0
    for kept in vendor.everything():
        name = kept.order.id
        order = replayed.orders.get(name)
        if order is None:
            yield f"the broker has {name}, and the records have not"
            continue
        if not order.role.exit and order.client_order_id:
            keys[order.client_order_id] += 1
        # An exit whose sibling closed everything may be filled or cancelled: both are right.
        ended = order.role.exit and order.final and kept.state in FINAL
        if order.state is not kept.state and not ended:
            yield f"{name} is {order.state} and at the broker {kept.state}"
        for execution in kept.executions:
            executions += 1
            fill = counted.get(f"{name}-{execution.id}")
            expected = (execution.quantity, execution.price, execution.fee, execution.at)
            if fill is None or (fill.quantity, fill.price, fill.fee, fill.at) != expected:
                yield f"execution {execution.id} of {name} is counted as {fill}"
    if executions != len(replayed.fills):
        yield f"{executions} executions make {len(replayed.fills)} fills"
    for key, times in keys.items():
        if times > 1:
            yield f"{key} made {times} orders at the broker"
    positions: dict[str, Decimal] = defaultdict(lambda: ZERO)
    for kept in vendor.everything():
        positions[kept.order.symbol] += kept.filled * kept.order.side.sign
    held = {p.symbol: p.quantity for book in replayed.books.values() for p in book.positions.values()}
    if {k: v for k, v in positions.items() if v} != held:
        yield "positions are not those of the broker's fills"
    yield from _not_at_the_broker(world, replayed)
    if replayed.halted or _lost_too_much(world, replayed):
        for kept in vendor.orders.values():
            if kept.working and replayed.orders[kept.order.id].remaining_opening:
                yield f"{kept.order.id} works at the broker while nothing may be opened"


def _lost_too_much(world: World, replayed: ReplayedLedger) -> bool:
    """Returns True if the account's loss is over its limit on the day on which the schedule ends."""
    if "main" not in replayed.books:
        return False
    day = world.clock.at // 86400 * 86400
    with amounts.exact():
        start = replayed.cash["main"] + sum(
            (
                fill.cash + fill.signed * world.script.close(fill.symbol, day)
                for fill in replayed.fills
                if fill.at < day
            ),
            ZERO,
        )
        book = replayed.books["main"]
        worth = book.equity({symbol: world.script.close(symbol, world.clock.at) for symbol in book.positions})
        return start - worth > LIMITS.daily_loss * start


def _not_at_the_broker(world: World, replayed: ReplayedLedger) -> Iterator[str]:
    vendor = world.vendor
    for order in replayed.orders.values():
        if order.role.exit or order.id in vendor.orders:
            continue
        if order.state not in {OrderState.REJECTED, OrderState.LOST} or not order.reason:
            yield f"{order.id} is {order.state} ({order.reason}), and the broker never had it"
        unheard = vendor.outcomes.get(order.id) in {"it never arrived", "it arrives later", "the answer was lost"}
        excused = unheard or world.flaky or order.id in world.orphans
        if order.state is OrderState.LOST and not excused:
            yield f"{order.id} was lost ({vendor.outcomes.get(order.id, 'never sent')}), and nobody had died"
    for order in replayed.orders.values():
        if order.role.exit and not order.final:
            entry = replayed.orders[order.parent or ""]
            if entry.final and not entry.filled:
                yield f"the exit {order.id} waits for an entry that has ended"


def _on_paper(case: Case) -> Iterator[str]:
    """Every fill agrees with its bar, and every bar that should have filled an order did."""
    yield from mismatches(case)
    for order in case.replayed.orders.values():
        if order.role.exit and not order.final:
            entry = case.replayed.orders[order.parent or ""]
            if entry.final and not entry.filled:
                yield f"the exit {order.id} waits for an entry that has ended"
