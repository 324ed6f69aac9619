"""Records what becomes of orders: a broker's report with its state, fills and exits, and the end of an order.

Recording a report twice changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.trading import amounts
from openbell.trading.amounts import ZERO
from openbell.trading.broker import BrokerExecution, OrderReport
from openbell.trading.fills import fill_of
from openbell.trading.orders import FINAL, MOVES, RESTING, Order, OrderState, Role, end_exits


def apply(journal: Journal, order: Order, report: OrderReport) -> Order:
    """Record a report and return the order. A state that cannot follow the recorded one is outdated, and is ignored."""
    if order.role.exit and not order.final:
        order = _sized(journal, order, report)
    if order.state is OrderState.HELD and (report.executions or report.state in {*RESTING, OrderState.FILLED}):
        order = order.to(OrderState.OPEN, journal.at)
        journal.put("order", order)
    order = _filled(journal, order, report)
    state = _next_state(order, report)
    if state is not order.state or (order.broker_id is None and not order.final):
        order = order.to(state, journal.at, report.reason, broker_id=report.broker_id)
        journal.put("order", order)
    _exits(journal, order, report)
    return order


def _sized(journal: Journal, order: Order, report: OrderReport) -> Order:
    """Set the quantity of an exit whose entry has ended: the entry's filled quantity less that of the other exit."""
    entry = queries.order(journal.view, order.parent or "")
    if entry is None or not entry.final or not entry.filled:
        return order
    others = [each for each in queries.bracket(journal.view, entry.id) if each.id != order.id]
    with amounts.exact():
        done = sum((each.quantity for each in report.executions), ZERO)
        left = entry.filled - sum((each.filled for each in others), ZERO)
    if (wanted := max(left, done)) == order.quantity or wanted < order.filled:
        return order
    if wanted < order.quantity and report.state is not OrderState.FILLED:
        return order  # it still works, and would look filled too early
    order = order.to(order.state, journal.at, quantity=wanted)
    journal.put("order", order)
    return order


def _filled(journal: Journal, order: Order, report: OrderReport) -> Order:
    """Record the executions that are new."""
    named = {_fill_id(order, each): each for each in report.executions}
    known = queries.known_fills(journal.view, named) if named else set()
    for fill_id, execution in named.items():
        if fill_id in known:
            continue
        fill = fill_of(order, fill_id, execution.quantity, execution.price, execution.at, fee=execution.fee)
        journal.put("fill", fill, new=True)
        if order.state in FINAL and order.state is not OrderState.FILLED:
            # The broker reported the end before the last fill: the fill counts all the same.
            order = _late_fill(order, execution, journal.at)
        else:
            order = order.with_fill(execution.quantity, execution.price, execution.fee, journal.at)
        order = order.to(order.state, journal.at, broker_id=report.broker_id)
        journal.put("order", order)
    return order


def _late_fill(order: Order, execution: BrokerExecution, at: float) -> Order:
    with amounts.exact():
        filled, paid = order.filled + execution.quantity, order.paid + execution.quantity * execution.price
        return replace(order, filled=filled, paid=paid, fees=order.fees + execution.fee, updated_at=at)


def _fill_id(order: Order, execution: BrokerExecution) -> str:
    return f"{order.id}-{execution.id}"


def _next_state(order: Order, report: OrderReport) -> OrderState:
    """Returns the reported state if it can follow the recorded one and agrees with the recorded fills."""
    state = report.state
    if state is OrderState.OPEN and order.filled:
        state = OrderState.PARTIALLY_FILLED
    if state is OrderState.FILLED and order.remaining:
        # Some fills are not reported yet; until then the order is not filled here.
        state = OrderState.PARTIALLY_FILLED if order.filled else OrderState.OPEN
    if order.state is OrderState.CANCELLING and state in {OrderState.OPEN, OrderState.PARTIALLY_FILLED}:
        return order.state
    return state if state is order.state or state in MOVES[order.state] else order.state


def _exits(journal: Journal, order: Order, report: OrderReport) -> None:
    if order.role is not Role.ENTRY:
        return
    exits = {each.role: each for each in queries.bracket(journal.view, order.id)}
    for name, reported in report.exits:
        known = exits.get(Role(name))
        if known is None:
            continue
        apply(journal, known, reported)
    if order.final and order.filled == ZERO:
        end_exits_of(journal, order)


def end(journal: Journal, order: Order, state: OrderState, reason: str | None) -> Order:
    """Record the new state of an order and, if it is final, the end of exits that have nothing to close without it."""
    order = order.to(state, journal.at, reason)
    journal.put("order", order)
    end_exits_of(journal, order)
    return order


def end_exits_of(journal: Journal, entry: Order) -> None:
    """Record the end of the exits of an order that has ended."""
    for each in end_exits(entry, queries.bracket(journal.view, entry.id), journal.at):
        journal.put("order", each)
