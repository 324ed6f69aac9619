"""Maps the states of Alpaca's orders to ours.

| Alpaca | ours | because |
|---|---|---|
| new, accepted, pending_new, accepted_for_bidding | open | Alpaca or an exchange has accepted it |
| partially_filled | open or partially_filled | depends on the fills that are known |
| stopped | open | a trade is guaranteed but has not happened |
| suspended | open | it cannot trade now but may later |
| pending_replace | open | the old order works until the new one does |
| replaced | the state of the order that replaced it | a leg that its sibling replaced is cancelled |
| held | held, or open | an exit is held until its entry is filled; then Alpaca watches its price, though only one of two \
exits is at the exchange |
| done_for_day, calculated | open | a gtc order works again tomorrow; a day order becomes `expired` or `filled` |
| pending_cancel | cancelling | fills may still come |
| canceled · expired · rejected | cancelled · expired · rejected | final |
| filled | filled | final |
| any other | open | an order in an unknown state may still trade |

A final state is accepted only if the known fills add up to the quantity that Alpaca reports as filled. Until then the order
stays open, because positions come from fills and a final order accepts no more fills; a later request gets the rest.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from openbell.brokers.alpaca.wire import MalformedReply, VendorOrder, closes_coins
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.broker import BrokerExecution, OrderReport
from openbell.trading.orders import FINAL, MOVES, Order, OrderState, Role

log = logging.getLogger(__name__)

Fills = Mapping[str, Sequence[BrokerExecution]]
"""By Alpaca's id of the order."""

_OPEN = """
new accepted pending_new accepted_for_bidding partially_filled stopped suspended pending_replace replaced held
done_for_day calculated
"""
STATES: dict[str, OrderState] = {
    **dict.fromkeys(_OPEN.split(), OrderState.OPEN),
    "pending_cancel": OrderState.CANCELLING,
    "canceled": OrderState.CANCELLED,
    "expired": OrderState.EXPIRED,
    "rejected": OrderState.REJECTED,
    "filled": OrderState.FILLED,
}
_REPLACED_BY_SIBLING = "the other exit took its place"


def report_of(order: Order, entries: Sequence[VendorOrder], legs: Sequence[VendorOrder], fills: Fills) -> OrderReport:
    """The report on an order: `entries` the order and its replacements, `legs` all its exits. Raises `MalformedReply`."""
    reports = ((role, exit_report(role, entries, legs, fills)) for role in (Role.TAKE_PROFIT, Role.STOP_LOSS))
    exits = tuple((str(role), report) for role, report in reports if report)
    return replace(_with_kept_coins(order, entries, _report(entries, fills, order.quantity)), exits=exits)


def _with_kept_coins(order: Order, chain: Sequence[VendorOrder], report: OrderReport) -> OrderReport:
    """Count the coins that Alpaca has kept as its fees as sold, at the average price, all of which is a fee.

    An order that closes a position in coins is sent for what the account has, and closes the position all the same.
    """
    sent = chain[0].quantity
    is_reduced = closes_coins(order) and len(chain) == 1 and sent is not None and sent < order.quantity
    if sent is None or not is_reduced or total(report.executions) != sent:
        return report
    last = report.executions[-1]
    with amounts.exact():
        kept = order.quantity - sent
        paid = sum((each.quantity * each.price for each in report.executions), ZERO)
        price = amounts.share(paid, sent)
        fee = BrokerExecution(f"{report.broker_id}-fee", kept, price, last.at, kept * price)
    return replace(report, state=OrderState.FILLED, executions=(*report.executions, fee), reason=None)


def exit_report(
    role: Role, entries: Sequence[VendorOrder], legs: Sequence[VendorOrder], fills: Fills
) -> OrderReport | None:
    """The report on one exit; None if there is none of that role. Raises `MalformedReply`."""
    chain = [leg for leg in legs if leg.role is role]
    if not chain:
        return None
    report = _report(chain, fills, max((leg.quantity for leg in chain if leg.quantity is not None), default=None))
    if current(chain).status == "replaced":
        # Only one exit is at the exchange; when the other one's price is reached, Alpaca replaces it by that one.
        others = [leg for leg in legs if leg.role is not role]
        gone = current(chain).replaced_by in {leg.id for leg in others} or any(leg.filled for leg in others)
        if gone and report.state is not OrderState.FILLED and _is_complete(chain, fills):
            return replace(report, state=OrderState.CANCELLED, reason=_REPLACED_BY_SIBLING)
        return report
    if report.state is OrderState.OPEN and current(entries).status != "filled":
        return replace(report, state=OrderState.HELD)
    return report


def current(chain: Sequence[VendorOrder]) -> VendorOrder:
    """The last of an order and its replacements that was not replaced itself; the last of all if every one was."""
    return next((each for each in reversed(chain) if each.status != "replaced"), chain[-1])


def reachable(order: Order, report: OrderReport) -> OrderReport:
    """The report with a state that the order's own state can change to; `unknown` cannot change to `cancelling`."""
    state = report.state
    if state is order.state or state in MOVES[order.state]:
        return report
    some = bool(order.filled or report.executions)
    working = OrderState.PARTIALLY_FILLED if some else OrderState.OPEN
    near = {
        OrderState.CANCELLING: working,
        OrderState.OPEN: working,
        OrderState.HELD: working,
        OrderState.REJECTED: OrderState.CANCELLED,
    }
    return replace(report, state=near.get(state, state))


def _report(chain: Sequence[VendorOrder], fills: Fills, quantity: Decimal | None) -> OrderReport:
    now = current(chain)
    executions = sorted(
        (fill for each in chain for fill in fills.get(each.id, ())), key=lambda fill: (fill.at, fill.id)
    )
    known = total(executions)
    if quantity is not None and known > quantity:
        raise MalformedReply(f"order {now.id} is filled beyond its quantity: check the account")
    state, reason = STATES.get(now.status, OrderState.OPEN), None
    if now.status not in STATES:
        log.warning("Alpaca's order %s has the unknown status %.40r; it is treated as open", now.id, now.status)
    if known and known == quantity:
        state = OrderState.FILLED
    elif state in FINAL and not _is_complete(chain, fills):
        log.info("Alpaca reports order %s as %s before all its fills; it is read again later", now.id, now.status)
        state = OrderState.OPEN
    elif state is OrderState.FILLED:  # completely, but less than was ordered: it was changed at Alpaca
        state, reason = OrderState.CANCELLED, "its quantity was reduced at Alpaca"
    elif state in FINAL:
        reason = f"Alpaca says {now.status}"
    if state is OrderState.OPEN and known:
        state = OrderState.PARTIALLY_FILLED
    return OrderReport(now.id, state, tuple(executions), reason)


def _is_complete(chain: Sequence[VendorOrder], fills: Fills) -> bool:
    """Returns True if the known fills add up to the quantity that Alpaca reports as filled.

    It is not documented whether an order includes the fills of the order that it replaced: both are accepted.
    """
    before = ZERO
    for each in chain:
        own = total(fills.get(each.id, ()))
        if own < each.filled and own + before != each.filled:
            return False
        before += own
    return True


def total(executions: Sequence[BrokerExecution]) -> Decimal:
    """The total quantity of some fills."""
    with amounts.exact():
        return sum((each.quantity for each in executions), ZERO)
