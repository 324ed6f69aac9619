"""Checks paper fills against ledger and bars: every bar is matched with every order in the simplest way.

The position follows the recorded fills, so that one wrong fill is reported once. `losses` adds up what an account is worth
after each minute, and when it had lost too much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from openbell.market.bars import MINUTE
from openbell.trading import amounts
from openbell.trading.amounts import ONE, ZERO
from openbell.trading.fills import Fill
from openbell.trading.orders import Order, OrderKind, OrderState, Role, Side
from tests.desk.trading.market import DAY, Outage, Script
from tests.desk.trading.replayed_ledger import ReplayedLedger
from tests.desk.trading.seats import COSTS, LIMITS

if TYPE_CHECKING:
    from tests.desk.trading.simulation import World

SET_BACK = 30.0
"""Seconds by which the clock may have been set back in one schedule."""
_OF_A_BRACKET = {
    "its exit was reached",
    "nothing is left to reduce",
    "its entry opened nothing",
    "the other exit closed the position",
}
_BY_OWNER, _BY_HALT = "cancelled by its owner", "trading was halted"
_NEARLY = 1e-7


@dataclass(frozen=True, slots=True)
class Case:
    """A ledger of paper accounts, with its bars and outages."""

    replayed: ReplayedLedger
    script: Script
    until: int
    """All bars before this time were matched."""
    outages: tuple[Outage, ...] = ()
    cancels: dict[str, float] | None = None
    """When the cancellation of an order began; None: at the time of its end."""
    flaky: bool = False

    def begun(self, order: Order) -> float:
        """Returns the time from which on bars may be unmatched because the order was being cancelled."""
        if self.flaky:
            return 0.0
        return order.updated_at if self.cancels is None else self.cancels.get(order.id, order.updated_at)

    def touched(self, account: str, since: float) -> bool:
        """Returns True if bars of a symbol that an account traded were missing after some moment."""
        symbols = {order.symbol for order in self.replayed.orders.values() if order.account == account}
        return any(each.symbol in symbols and (each.end is None or each.end >= since) for each in self.outages)


def case_of(world: World, until: int) -> Case:
    """Returns the case of the present's ledger."""
    return Case(
        ReplayedLedger.of(world.memory),
        world.script,
        until,
        tuple(world.outages),
        dict(world.cancel_begun),
        world.flaky,
    )


def overdue(world: World) -> list[str]:
    """Returns the mismatches so far of symbols whose bars can be read, on accounts that can be valued."""
    case, found = case_of(world, world.clock.closed), list[str]()
    for account, book in case.replayed.books.items():
        if not set(book.positions) & set(world.down):
            for symbol in sorted(set(case.script.bars) - set(world.down)):
                found += [f"during an outage: {each}" for each in _symbol(case, account, symbol)]
    return found


def mismatches(case: Case) -> Iterator[str]:
    """Yields every fill that its bar does not allow, and every bar that should have filled an order."""
    for account in case.replayed.books:
        for symbol in case.script.bars:
            yield from _symbol(case, account, symbol)
        yield from _in_time(case, account)
        yield from _limits(case, account)


# One symbol of one account


def _symbol(case: Case, account: str, symbol: str) -> Iterator[str]:
    replayed, bars = case.replayed, case.script.bars[symbol]
    orders = [
        order
        for order in replayed.orders.values()
        if (order.account, order.symbol) == (account, symbol)
        and replayed.first[order.id].state is not OrderState.REJECTED
    ]
    fills = {
        (each.order_id, each.bar): each for each in replayed.fills if (each.account, each.symbol) == (account, symbol)
    }
    filled_in = {bar for _, bar in fills}
    minutes = filled_in.union(*(_may_reach(case, order) for order in orders))
    position, met = ZERO, 0
    for minute in sorted(minute for minute in minutes if minute is not None):
        index = int(np.searchsorted(bars.time, minute))
        if index >= len(bars) or bars.time[index] != minute:
            yield f"a fill of {account} in {symbol} has no bar at {minute}"
            continue
        row = tuple(float(column[index]) for column in (bars.open, bars.high, bars.low))
        left = amounts.down(amounts.of_bar(bars.volume[index]) * COSTS.volume_share)
        before = {order.id: _before(replayed.versions[order.id], minute) for order in orders}
        for order in sorted(orders, key=lambda each: _turn(each, before)):
            version, fill = before[order.id], fills.get((order.id, minute))
            if version is not None and version.state in {OrderState.OPEN, OrderState.PARTIALLY_FILLED}:
                yield from _compare(case, replayed.orders[order.id], version, fill, row, minute, position, left)
            elif fill is not None and (order.role is not Role.STOP_LOSS and order.role is not Role.TAKE_PROFIT):
                yield f"fill {fill.id} is of an order that did not rest"
            if fill is not None:
                yield from _bounds(fill, order, row)
                met += 1
                left -= fill.quantity
                before_fill, position = position, position + fill.signed
                if order.role.exit and abs(position) > abs(before_fill):
                    yield f"the exit {order.id} took {before_fill} to {position}"
        if left < 0:
            yield f"more was had of {symbol} at {minute} than its volume allows"
        if position < 0:
            yield f"{account} is short of {symbol} at {minute}: {position}"
    if met != len(fills):
        yield f"{account} has {len(fills)} fills in {symbol}, of which {met} have a bar"
    for order in orders:
        yield from _left_over(case, order)


def _turn(order: Order, before: dict[str, Order | None]) -> tuple[int, float, str, int]:
    """Returns the sort key: resting exits first, stops before targets; exits of a new entry after their entry."""
    version = before[order.id]
    target = int(order.role is Role.TAKE_PROFIT)
    if order.role.exit and version is not None and version.state is not OrderState.HELD:
        return 0, float(target), f"{order.placed_at:.3f} {order.id}", 0
    return 1, order.placed_at, order.parent or order.id, 1 + target if order.role.exit else 0


def _before(versions: list[Order], minute: int) -> Order | None:
    """Returns an order as it was when a minute began; None if it did not exist."""
    found = None
    for each in versions:
        if each.updated_at <= minute and each.placed_at <= minute:
            found = each
    return found


def _life(order: Order, until: int) -> float:
    return order.updated_at if order.final else float(until)


def _may_reach(case: Case, order: Order) -> set[int | None]:
    """Returns the minutes whose bars may reach an order while it works."""
    bars = case.script.bars[order.symbol].between(order.placed_at, _life(order, case.until))
    if not len(bars):
        return set()
    if order.kind is OrderKind.MARKET:
        reached = np.ones(len(bars), dtype=bool)
    else:
        prices = [float(each) for each in (order.limit_price, order.stop_price) if each is not None]
        # Either price from either side: a triggered stop fills at any price.
        reached = (bars.low <= max(prices)) & (bars.high >= min(prices)) | bool(order.triggered)
        if order.kind is OrderKind.LIMIT:
            reached |= bars.low < prices[0] if order.side is Side.BUY else bars.high > prices[0]
        if order.kind is not OrderKind.LIMIT:
            reached |= bars.high >= prices[-1] if order.side is Side.BUY else bars.low <= prices[-1]
    return {int(time) for time in bars.time[reached]}


def _compare(
    case: Case,
    now: Order,
    order: Order,
    fill: Fill | None,
    row: tuple[float, ...],
    minute: int,
    position: Decimal,
    left: Decimal,
) -> Iterator[str]:
    """Compare the recorded fill of a resting order with the fill that the bar should have made."""
    price = _price(order, row)
    reducible = max(ZERO, -position * order.side.sign)
    quantities = [
        min(order.remaining, allowed, left) if price is not None else ZERO
        for allowed in (reducible + order.remaining_opening, reducible)
    ]
    done = fill.quantity if fill else ZERO
    if order.role.exit:
        # The fill of its sibling in the same minute is not considered here.
        excused = fill is None or (fill.quantity <= quantities[0] and fill.price == price)
        if fill is None and quantities[0] > 0 and not _ended_with(now, minute) and not _excused(case, now, minute):
            yield f"{order.id} ({order.role}) was not filled at {minute}: {quantities[0]} at {price}"
        elif not excused:
            yield f"{order.id} ({order.role}) was filled {fill}, and {minute} allows {quantities[0]} at {price}"
        return
    if fill is not None and fill.price != price:
        yield f"fill {fill.id} is at {fill.price}, and its bar makes that {price}"
    if done == quantities[0]:
        return
    if done == max(ZERO, quantities[1]) and (order.remaining_opening and _nothing_opens(case, order, minute)):
        return
    if fill is None and (quantities[0] <= 0 or _ended_with(now, minute) or _excused(case, now, minute)):
        return
    yield f"{order.id} ({order.kind}, {now.state}) was filled {done} at {minute} instead of {quantities[0]} at {price}"


def _ended_with(now: Order, minute: int) -> bool:
    """Returns True if the rest of its bracket ended an order in this minute."""
    return now.final and now.updated_at == minute + MINUTE and now.reason in _OF_A_BRACKET


def _excused(case: Case, now: Order, minute: int) -> bool:
    """Returns True if an order need not be matched with a bar, because it was ended meanwhile."""
    if not now.final:
        return False
    if now.updated_at < minute + MINUTE:
        return True
    if now.reason == _BY_OWNER:
        waited = any(each.symbol == now.symbol and each.begin <= now.updated_at for each in case.outages)
        return waited or minute + MINUTE > case.begun(now) // MINUTE * MINUTE
    return now.reason == _BY_HALT


def _nothing_opens(case: Case, order: Order, minute: int) -> bool:
    """Returns True if nothing may have been opened in a minute, whenever its bars were matched."""
    return any(at >= order.placed_at for at in case.replayed.halts) or case.touched(order.account, minute)


def _price(order: Order, row: tuple[float, ...]) -> Decimal | None:
    """Returns the price at which a bar fills an order; None if it does not."""
    opened, high, low = row
    buying = order.side is Side.BUY
    stopped = order.kind in {OrderKind.STOP, OrderKind.STOP_LIMIT} and not order.triggered
    if not stopped and order.kind in {OrderKind.LIMIT, OrderKind.STOP_LIMIT}:
        return _limited(order.limit_price or ZERO, row, buying)
    if not stopped:
        return _slipped(amounts.of_bar(opened), buying)
    stop = order.stop_price or ZERO
    if not (high >= float(stop) if buying else low <= float(stop)):
        return None
    at_open = opened >= float(stop) if buying else opened <= float(stop)
    if order.kind is OrderKind.STOP:
        return _slipped(amounts.of_bar(opened) if at_open else stop, buying)
    limit = order.limit_price or ZERO
    if at_open:
        return _limited(limit, row, buying)
    if limit == stop or (limit < stop) == buying:
        return None
    return min(_slipped(stop, True), limit) if buying else max(_slipped(stop, False), limit)


def _limited(limit: Decimal, row: tuple[float, ...], buying: bool) -> Decimal | None:
    opened, high, low = row
    if opened < float(limit) if buying else opened > float(limit):
        return amounts.of_bar(opened)
    return limit if (low < float(limit) if buying else high > float(limit)) else None


def _slipped(price: Decimal, buying: bool) -> Decimal:
    with amounts.exact():
        return amounts.against(price * (ONE + COSTS.slippage * (1 if buying else -1)), buying)


def _bounds(fill: Fill, order: Order, row: tuple[float, ...]) -> Iterator[str]:
    slip, little = COSTS.slippage, Decimal("1e-9")
    high, low = (amounts.of_bar(each) for each in row[1:])
    if not low * (1 - slip) - little <= fill.price <= high * (1 + slip) + little:
        yield f"fill {fill.id} at {fill.price} outside {low} to {high}"
    limit = order.limit_price
    if limit is not None and (fill.price > limit if order.side is Side.BUY else fill.price < limit):
        yield f"fill {fill.id} at {fill.price} is worse than its limit {limit}"
    if fill.bar is None or fill.bar < order.placed_at or fill.at != fill.bar + MINUTE:
        yield f"fill {fill.id} is of the bar {fill.bar}, and its order was placed at {order.placed_at}"


def _left_over(case: Case, order: Order) -> Iterator[str]:
    if order.final or order.state is OrderState.HELD:
        return
    if order.expires_at is not None and order.expires_at <= case.until:
        yield f"{order.id} should have expired"
    if case.replayed.halted and order.remaining_opening and not case.outages:
        yield f"{order.id} rests while trading is halted"


# One account


def _in_time(case: Case, account: str) -> Iterator[str]:
    """Fills are recorded in the order of time, except those of a symbol whose bars were missing."""
    last: dict[str, float] = {}
    for each in case.replayed.counted:
        fill = each.fill
        if fill.account != account:
            continue
        late = any(out.symbol == fill.symbol and out.begin <= each.written for out in case.outages)
        if fill.at < (last.get(fill.symbol, 0.0) if late else max(last.values(), default=0.0)):
            yield f"fill {fill.id} of {fill.at} was written after a later one"
        last[fill.symbol] = max(fill.at, last.get(fill.symbol, 0.0))


@dataclass(frozen=True, slots=True)
class Losses:
    """The minutes after which an account's daily loss was over its limit."""

    ends: np.ndarray
    reached: np.ndarray
    surely: np.ndarray
    """`reached` without losses so near to the limit that floats cannot decide."""


def losses(case: Case, account: str) -> Losses | None:
    """Returns the losses after each minute from the first fill on; None if there is no fill."""
    fills = [each for each in case.replayed.fills if each.account == account]
    if not fills:
        return None
    first, last = min(each.at for each in fills), max(int(bars.time[-1]) + MINUTE for bars in case.script.bars.values())
    begin = int(first // DAY * DAY)
    ends = np.arange(begin, min(case.until, max(last, int(fills[-1].at)) + MINUTE) + 1, MINUTE)
    equity = np.full(len(ends), float(case.replayed.cash[account]))
    for fill in fills:
        equity[ends >= fill.at] += float(fill.cash)
    for symbol, bars in case.script.bars.items():
        held = np.zeros(len(ends))
        for fill in fills:
            if fill.symbol == symbol:
                held[ends >= fill.at] += float(fill.signed)
        index = np.maximum(np.searchsorted(bars.time, ends - MINUTE, side="right") - 1, 0)
        equity += held * bars.close[index]
    # The minute that ends at midnight belongs to the day before.
    start = equity[np.maximum((ends - 1) // DAY * DAY - begin, 0) // MINUTE]
    share = (start - equity) / start
    most = float(LIMITS.daily_loss)
    return Losses(ends, share >= most - _NEARLY, share >= most + _NEARLY)


def _limits(case: Case, account: str) -> Iterator[str]:
    replayed, lost = case.replayed, losses(case, account)
    for each in replayed.counted:
        if each.fill.account != account or not each.opened:
            continue
        for outage in case.outages:
            during = outage.begin_seq < each.seq and (outage.end_seq is None or each.seq <= outage.end_seq)
            # A failing feed delivers no new minute; minutes that closed before are stored, and their fills may be written
            # later.
            known = not outage.store and each.fill.at <= outage.begin // MINUTE * MINUTE
            if during and not known and outage.symbol in each.held:
                yield f"fill {each.fill.id} opened while there was no price of {outage.symbol}"
    if lost is None:
        return
    for order in replayed.orders.values():
        if order.account != account or order.state is OrderState.REJECTED or order.role.exit:
            continue
        yield from _limit(case, order, lost)


def _limit(case: Case, order: Order, known: Losses) -> Iterator[str]:
    versions = case.replayed.versions[order.id]
    for each in versions:
        if each.final and "OPENBELL_RISK_DAILY_LOSS" in (each.reason or ""):
            index = int(np.searchsorted(known.ends, each.updated_at))
            if index >= len(known.ends) or known.ends[index] != each.updated_at or not known.reached[index]:
                yield f"{order.id} was ended at {each.updated_at} by a loss that was not there"
            if each.updated_at <= order.placed_at:
                yield f"{order.id} was placed at {order.placed_at} and ended by a loss of {each.updated_at}"
    if case.touched(order.account, order.placed_at):
        return  # an unknown loss cancels nothing, and is not checked later
    alive = (known.ends > order.placed_at + SET_BACK) & (known.ends < _life(order, case.until)) & known.surely
    for end in known.ends[alive][:1].tolist():
        then = _before(versions, int(end))
        if then is not None and then.remaining_opening and not _excused(case, order, end - MINUTE):
            yield f"{order.id} could open after {end}, when {order.account} had lost too much"
