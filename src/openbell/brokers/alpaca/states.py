"""Alpaca's words for where an order stands, in ours.

| Alpaca | ours | because |
|---|---|---|
| new, accepted, pending_new, accepted_for_bidding | open | it is taken, at Alpaca or at an exchange |
| partially_filled | open or partially_filled | by the fills that are known |
| stopped | open | a trade is promised and has not happened |
| suspended | open | it cannot trade now and may later |
| pending_replace | open | the old order works until the new one does |
| replaced | that of the order in its place | a leg whose place its sibling took is cancelled |
| held | held, or open | an exit is held until its entry is filled; then the vendor watches its price, though only one exit \
of two stands at the exchange |
| done_for_day, calculated | open | a gtc order goes on tomorrow; of a day order `expired` or `filled` follows |
| pending_cancel | cancelling | fills may still come |
| canceled · expired · rejected | cancelled · expired · rejected | final |
| filled | filled | final |
| any other | open | what is not understood may still trade, so it stays counted |

A final word is believed only when the fills explain the quantity that Alpaca says is filled: until then the order stays
open, because a position comes from fills and nothing can be added to a final order. Asking later resolves it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from openbell.brokers.alpaca.wire import Malformed, VendorOrder
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.broker import Execution, Report
from openbell.trading.orders import FINAL, MOVES, Order, Role, State

log = logging.getLogger(__name__)

Fills = Mapping[str, Sequence[Execution]]
"""By Alpaca's id of the order."""

_OPEN = """
new accepted pending_new accepted_for_bidding partially_filled stopped suspended pending_replace replaced held
done_for_day calculated
"""
STATES: dict[str, State] = {
    **dict.fromkeys(_OPEN.split(), State.OPEN),
    "pending_cancel": State.CANCELLING,
    "canceled": State.CANCELLED,
    "expired": State.EXPIRED,
    "rejected": State.REJECTED,
    "filled": State.FILLED,
}
_TOOK_ITS_PLACE = "the other exit took its place"


def report_of(order: Order, entries: Sequence[VendorOrder], legs: Sequence[VendorOrder], fills: Fills) -> Report:
    """What Alpaca knows of an order: `entries` are it and what replaced it, `legs` all its exits. Raises `Malformed`."""
    reports = ((role, exit_report(role, entries, legs, fills)) for role in (Role.TAKE_PROFIT, Role.STOP_LOSS))
    exits = tuple((str(role), report) for role, report in reports if report)
    return replace(_told(entries, fills, order.quantity), exits=exits)


def exit_report(role: Role, entries: Sequence[VendorOrder], legs: Sequence[VendorOrder], fills: Fills) -> Report | None:
    """What Alpaca knows of one exit; None if there is none of that role. Raises `Malformed`."""
    chain = [leg for leg in legs if leg.role is role]
    if not chain:
        return None
    told = _told(chain, fills, max((leg.quantity for leg in chain if leg.quantity is not None), default=None))
    if current(chain).status == "replaced":
        # At Alpaca one exit stands at the exchange and is replaced by its sibling when that one's price is reached.
        others = [leg for leg in legs if leg.role is not role]
        gone = current(chain).replaced_by in {leg.id for leg in others} or any(leg.filled for leg in others)
        if gone and told.state is not State.FILLED and _explained(chain, fills):
            return replace(told, state=State.CANCELLED, reason=_TOOK_ITS_PLACE)
        return told
    if told.state is State.OPEN and current(entries).status != "filled":
        return replace(told, state=State.HELD)
    return told


def current(chain: Sequence[VendorOrder]) -> VendorOrder:
    """Of an order and what replaced it, the one that counts."""
    return next((each for each in reversed(chain) if each.status != "replaced"), chain[-1])


def reachable(order: Order, report: Report) -> Report:
    """The report in a state that can follow the order's own: `unknown` is not followed by `cancelling`, and so on."""
    state = report.state
    if state is order.state or state in MOVES[order.state]:
        return report
    some = bool(order.filled or report.executions)
    working = State.PARTIALLY_FILLED if some else State.OPEN
    near = {
        State.CANCELLING: working,
        State.OPEN: working,
        State.HELD: working,
        State.REJECTED: State.CANCELLED,
    }
    return replace(report, state=near.get(state, state))


def _told(chain: Sequence[VendorOrder], fills: Fills, quantity: Decimal | None) -> Report:
    now = current(chain)
    executions = sorted(
        (fill for each in chain for fill in fills.get(each.id, ())), key=lambda fill: (fill.at, fill.id)
    )
    known = total(executions)
    if quantity is not None and known > quantity:
        raise Malformed(f"order {now.id} is filled beyond its quantity: look at the account")
    state, reason = STATES.get(now.status, State.OPEN), None
    if now.status not in STATES:
        log.warning("Alpaca's order %s has a status nobody knows, %.40r: taken as open", now.id, now.status)
    if known and known == quantity:
        state = State.FILLED
    elif state in FINAL and not _explained(chain, fills):
        log.info("Alpaca says %s of order %s before it tells all fills: asked again later", now.status, now.id)
        state = State.OPEN
    elif state is State.FILLED:  # all of it, and less than was ordered: somebody changed it at Alpaca
        state, reason = State.CANCELLED, "its quantity was reduced at Alpaca"
    elif state in FINAL:
        reason = f"Alpaca says {now.status}"
    if state is State.OPEN and known:
        state = State.PARTIALLY_FILLED
    return Report(now.id, state, tuple(executions), reason)


def _explained(chain: Sequence[VendorOrder], fills: Fills) -> bool:
    """Whether the fills that are known are all that Alpaca counts.

    Whether an order counts the fills of the one that it replaced is not documented: both are taken.
    """
    before = ZERO
    for each in chain:
        own = total(fills.get(each.id, ()))
        if own < each.filled and own + before != each.filled:
            return False
        before += own
    return True


def total(executions: Sequence[Execution]) -> Decimal:
    """What they make together."""
    with amounts.exact():
        return sum((each.quantity for each in executions), ZERO)
