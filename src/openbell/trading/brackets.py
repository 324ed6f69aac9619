"""Brackets: an entry with a take-profit and a stop-loss order; when one of these exits fills, the other is cancelled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from openbell.trading.amounts import ZERO
from openbell.trading.orders import Force, Kind, Order, Role, State

_ENTRY_ENDED = "its entry opened nothing"


def exits_of(entry: Order) -> list[Order]:
    """Returns the exits of an entry, in the state `held` until it fills."""
    exits: list[Order] = []
    for role, price in ((Role.TAKE_PROFIT, entry.take_profit), (Role.STOP_LOSS, entry.stop_loss)):
        if price is None:
            continue
        target = role is Role.TAKE_PROFIT
        exits.append(
            replace(
                entry,
                id=f"{entry.id}-{'tp' if target else 'sl'}",
                side=entry.side.other,
                kind=Kind.LIMIT if target else Kind.STOP,
                opening=ZERO,
                limit_price=price if target else None,
                stop_price=None if target else price,
                take_profit=None,
                stop_loss=None,
                role=role,
                parent=entry.id,
                client_order_id=None,
                time_in_force=Force.GTC,
                expires_at=None,
                state=State.HELD,
                broker_id=None,
            )
        )
    return exits


def end_exits(ended: Order, orders: Iterable[Order], at: float) -> list[Order]:
    """Returns the cancelled exits of an entry that has ended: those still held, and all if the entry filled nothing."""
    if ended.role is not Role.ENTRY or not ended.final:
        return []
    return [
        each.to(State.CANCELLED, at, _ENTRY_ENDED)
        for each in orders
        if each.parent == ended.id and not each.final and (each.state is State.HELD or not ended.filled)
    ]
