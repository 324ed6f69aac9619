"""Reads what an account has traded and wants to trade in one symbol: what a chart of the symbol can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.charts.account.records import SymbolRecords
from openbell.stores.records import alerts as alert_queries
from openbell.stores.records import orders as queries
from openbell.stores.records.view import View

if TYPE_CHECKING:
    from openbell.desk.trading.desk import TradingDesk


async def symbol_records(trading: TradingDesk, principal: str, symbol: str, *, with_intentions: bool) -> SymbolRecords:
    """Returns the fills and the position of a principal's account in a symbol, as known at the desk's time.

    `with_intentions`: also its working orders and the principal's active alerts. Raises `AccountNotFound`, `Unauthorized`,
    `StoreError`.
    """
    accounts, books = trading.accounts, trading.books
    await trading.settle((await accounts.admit(principal)).name)

    def work(view: View) -> SymbolRecords:
        account = accounts.open(view, principal)
        position = books.book(view, account).positions.get(symbol)
        fills = tuple(queries.fills_of(view, account.name, symbol))
        if not with_intentions:
            return SymbolRecords(fills, position)
        orders = (order for order in books.orders(view, account) if order.principal == principal)
        return SymbolRecords(
            fills,
            position,
            tuple(order for order in orders if order.symbol == symbol),
            tuple(alert for alert in alert_queries.active(view, principal) if alert.symbol == symbol),
        )

    return await trading.records.read(work)
