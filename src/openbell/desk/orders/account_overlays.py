"""The account on a chart: what it has traded and wants to trade in the chart's symbol."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from openbell.charts.account.overlay import AccountOverlay, SymbolRecords, missing_overlay, overlay_of
from openbell.desk.orders.accounts import AccountService
from openbell.desk.orders.books import Books
from openbell.market.bars import Bars
from openbell.market.errors import OpenbellError
from openbell.stores.records import alerts as alert_queries
from openbell.stores.records import orders as queries
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View

log = logging.getLogger(__name__)
_READ_ONLY = "read-only: orders are shown as they were last recorded, and may have filled since"


class AccountOverlays:
    """Reads what charts show of accounts, as known at the desk's time."""

    def __init__(
        self,
        records: Records,
        accounts: AccountService,
        books: Books,
        settle: Callable[[str], Awaitable[None]],
        *,
        kind: str,
        read_only: bool,
    ) -> None:
        """`settle` applies the bars that have closed to an account. `kind`: `paper` or `live`."""
        self._records = records
        self._accounts = accounts
        self._books = books
        self._settle = settle
        self._kind = kind
        self._read_only = read_only

    async def of(self, principal: str, bars: Bars, *, refused: str | None = None) -> AccountOverlay:
        """Returns what a chart of these bars shows of a principal's account.

        A chart is drawn even if the account cannot be read: the overlay then has the reason. `refused` is the reason if the
        principal may read fills and positions, but not working orders and alerts.
        """
        try:
            records = await self._read(principal, bars.instrument.symbol, with_intentions=refused is None)
        except OpenbellError as error:
            log.debug("the account is not on the chart: %s", error)
            return missing_overlay(self._kind, bars, error.message)
        notes = [
            f"working orders and alerts are not shown: {refused}" if refused else None,
            _READ_ONLY if self._read_only and records.orders else None,
        ]
        return overlay_of(records, self._kind, bars, "; ".join(filter(None, notes)) or None)

    async def _read(self, principal: str, symbol: str, *, with_intentions: bool) -> SymbolRecords:
        """Returns the fills and the position of a principal's account in a symbol.

        `with_intentions`: also its working orders and the principal's active alerts. Raises `AccountNotFound`,
        `Unauthorized`, `StoreError`.
        """
        await self._settle((await self._accounts.admit(principal)).name)

        def work(view: View) -> SymbolRecords:
            account = self._accounts.open(view, principal)
            position = self._books.book(view, account).positions.get(symbol)
            fills = tuple(queries.fills_of(view, account.name, symbol))
            if not with_intentions:
                return SymbolRecords(fills, position)
            orders = (order for order in self._books.orders(view, account) if order.principal == principal)
            return SymbolRecords(
                fills,
                position,
                tuple(order for order in orders if order.symbol == symbol),
                tuple(alert for alert in alert_queries.active(view, principal) if alert.symbol == symbol),
            )

        return await self._records.read(work)
