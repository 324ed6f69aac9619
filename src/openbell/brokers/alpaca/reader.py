"""Reads from Alpaca: an order with its replacements and exits, its fills, the account. All requests may be retried."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from openbell.brokers.alpaca.http import TradingHttp, describe
from openbell.brokers.alpaca.states import total
from openbell.brokers.alpaca.wire import (
    MalformedReply,
    VendorOrder,
    activity_id,
    bracket,
    decode,
    number,
    read_complaint,
    read_fill,
    read_order,
)
from openbell.net.response import Response
from openbell.trading.broker import BrokerExecution, BrokerUnavailable
from openbell.trading.orders import Order

_FOLLOWED = 20
"""How many replacements of one order are looked up."""
_PAGE = 100
_PAGES = 100
_DAY = 86_400
"""Fills are requested from this many seconds before the order was placed: Alpaca's clock may differ from ours."""
_NOT_FOUND = 40_410_000


class AlpacaReader:
    """Reads orders, fills and the account. Raises `BrokerUnavailable`, and `MalformedReply` for contradicting answers."""

    def __init__(self, http: TradingHttp, secrets: tuple[str, ...]) -> None:
        self._http = http
        self._secrets = secrets

    async def family(self, order: Order) -> tuple[list[VendorOrder], list[VendorOrder]]:
        """An order and its replacements, and all its exits; both empty if Alpaca does not have it.

        For an exit, the order is its entry.
        """
        our_id = (order.parent or order.id) if order.role.exit else order.id
        root = await self._read_order("/v2/orders:by_client_order_id", {"client_order_id": our_id, "nested": "true"})
        if root is None:
            return [], []
        if root.client_order_id != our_id:
            raise MalformedReply("it has another client_order_id")
        if not root.legs and (order.role.exit or bracket(order)):
            # Only the request by Alpaca's own id is documented to return the legs.
            root = await self.order(root.id) or root
        entries = await self._followed([root])
        legs = await self._followed([leg for entry in entries for leg in entry.legs])
        if any(leg.role is None for leg in legs):
            raise MalformedReply(f"order {root.id} has an exit that is neither limit nor stop")
        return entries, legs

    async def order(self, order_id: str) -> VendorOrder | None:
        """An order by Alpaca's id, with its legs; None if Alpaca does not have it."""
        return await self._read_order(f"/v2/orders/{quote(order_id, safe='')}", {"nested": "true"})

    async def fills(self, orders: Sequence[VendorOrder], placed_at: float) -> dict[str, list[BrokerExecution]]:
        """All fills of the given orders, by Alpaca's id."""
        after = datetime.fromtimestamp(int(placed_at) - _DAY, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {each.id: await self._fills_of(each, after) for each in orders if each.filled}

    async def equity_and_cash(self) -> dict[str, Decimal]:
        """The account's equity and cash."""
        account = await self._json("account", "/v2/account", {})
        if not isinstance(account, dict):
            raise MalformedReply("not an account")
        return {name: number(account.get(name)) for name in ("equity", "cash")}

    async def _followed(self, orders: Sequence[VendorOrder]) -> list[VendorOrder]:
        """The given orders and their replacements, replaced ones first."""
        found = {each.id: each for each in orders}
        for _ in range(_FOLLOWED):
            missing = [
                each.replaced_by for each in found.values() if each.replaced_by and each.replaced_by not in found
            ]
            if not missing:
                return sorted(found.values(), key=lambda each: each.status != "replaced")
            for order_id in missing:
                replacement = await self.order(order_id)
                if replacement is None:
                    raise MalformedReply(f"order {order_id}, which replaced another, is missing")
                found[order_id] = replacement
        raise MalformedReply(f"an order was replaced more than {_FOLLOWED} times")

    async def _fills_of(self, order: VendorOrder, after: str) -> list[BrokerExecution]:
        """The fills of one order, each once, oldest first."""
        found: dict[str, BrokerExecution] = {}
        seen: set[str] = set()
        params = {"order_id": order.id, "after": after, "direction": "asc", "page_size": str(_PAGE)}
        for _ in range(_PAGES):
            rows = await self._json("fills", "/v2/account/activities/FILL", params)
            if not isinstance(rows, list):
                raise MalformedReply("not a list of fills")
            ids = [activity_id(row) for row in rows]
            for row in rows:
                # Alpaca filters by order since July 2026; `read_fill` filters again.
                if fill := read_fill(row, order.id):
                    found.setdefault(fill.id, fill)
            fills = list(found.values())
            if seen.issuperset(ids) or (len(rows) < _PAGE and total(fills) >= order.filled):
                return fills
            seen.update(ids)
            params["page_token"] = ids[-1]
        raise MalformedReply(f"more than {_PAGES} pages of fills")

    async def _read_order(self, path: str, params: dict[str, str]) -> VendorOrder | None:
        answer = await self._http.read(path, params)
        if answer.status == 404:
            # Any other 404 is a wrong address: it must not make a working order look lost.
            complaint = read_complaint(answer.body, self._secrets)
            if complaint and complaint.code == _NOT_FOUND and "endpoint" not in complaint.message:
                return None
        return read_order(self._decoded("order", answer))

    async def _json(self, what: str, path: str, params: dict[str, str]) -> Any:
        return self._decoded(what, await self._http.read(path, params))

    def _decoded(self, what: str, answer: Response) -> Any:
        if answer.status == 200:
            return decode(answer.body)
        complaint = read_complaint(answer.body, self._secrets)
        why = describe(answer.status, complaint) if complaint else f"HTTP {answer.status}"
        raise BrokerUnavailable(f"Alpaca did not return the {what}: {why}", status=answer.status)
