"""What Alpaca tells: an order with all that belongs to it, its fills, the account. Only asks, so it may ask again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from openbell.brokers.alpaca import outcomes
from openbell.brokers.alpaca.http import Answer, TradingHttp
from openbell.brokers.alpaca.states import total
from openbell.brokers.alpaca.wire import (
    Malformed,
    VendorOrder,
    activity_id,
    bracket,
    decode,
    number,
    read_complaint,
    read_fill,
    read_order,
)
from openbell.trading.broker import BrokerUnavailable, Execution
from openbell.trading.orders import Order

_FOLLOWED = 20
"""Replacements of one order that are looked up."""
_PAGE = 100
_PAGES = 100
_DAY = 86_400
"""Seconds before an order was placed from which its fills are asked for: two machines' clocks differ."""
_NOT_FOUND = 40_410_000


class Reader:
    """Asks about orders and the account. Raises `BrokerUnavailable`, and `Malformed` for what contradicts itself."""

    def __init__(self, http: TradingHttp, secrets: tuple[str, ...]) -> None:
        self._http = http
        self._secrets = secrets

    async def family(self, order: Order) -> tuple[list[VendorOrder], list[VendorOrder]]:
        """An order (of an exit: its entry) with what replaced it, and all its exits; nothing if it is not there."""
        our_id = (order.parent or order.id) if order.role.exit else order.id
        root = await self._ask("/v2/orders:by_client_order_id", {"client_order_id": our_id, "nested": "true"})
        if root is None:
            return [], []
        if root.client_order_id != our_id:
            raise Malformed("an order of another id")
        if not root.legs and (order.role.exit or bracket(order)):
            # Only the question by Alpaca's own id is documented to tell the legs.
            root = await self.order(root.id) or root
        entries = await self._followed([root])
        legs = await self._followed([leg for entry in entries for leg in entry.legs])
        if any(leg.role is None for leg in legs):
            raise Malformed(f"order {root.id} has an exit that is neither limit nor stop")
        return entries, legs

    async def order(self, order_id: str) -> VendorOrder | None:
        """An order by Alpaca's id, with its legs."""
        return await self._ask(f"/v2/orders/{quote(order_id, safe='')}", {"nested": "true"})

    async def fills(self, orders: Sequence[VendorOrder], placed_at: float) -> dict[str, list[Execution]]:
        """All fills of those orders, by Alpaca's id."""
        after = datetime.fromtimestamp(int(placed_at) - _DAY, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {each.id: await self._fills_of(each, after) for each in orders if each.filled}

    async def equity_and_cash(self) -> dict[str, Decimal]:
        """What the account is counted at."""
        account = await self._json("account", "/v2/account", {})
        if not isinstance(account, dict):
            raise Malformed("no account")
        return {name: number(account.get(name)) for name in ("equity", "cash")}

    async def _followed(self, orders: Sequence[VendorOrder]) -> list[VendorOrder]:
        """Those orders and what replaced them, the replaced ones first."""
        found = {each.id: each for each in orders}
        for _ in range(_FOLLOWED):
            missing = [
                each.replaced_by for each in found.values() if each.replaced_by and each.replaced_by not in found
            ]
            if not missing:
                return sorted(found.values(), key=lambda each: each.status != "replaced")
            for order_id in missing:
                there = await self.order(order_id)
                if there is None:
                    raise Malformed(f"order {order_id}, which replaced another, is not there")
                found[order_id] = there
        raise Malformed("an order was replaced again and again")

    async def _fills_of(self, order: VendorOrder, after: str) -> list[Execution]:
        """Each fill once, oldest first."""
        found: dict[str, Execution] = {}
        seen: set[str] = set()
        params = {"order_id": order.id, "after": after, "direction": "asc", "page_size": str(_PAGE)}
        for _ in range(_PAGES):
            rows = await self._json("fills", "/v2/account/activities/FILL", params)
            if not isinstance(rows, list):
                raise Malformed("no list of fills")
            ids = [activity_id(row) for row in rows]
            for row in rows:
                # Alpaca filters by the order since July 2026; should it not, we do.
                if fill := read_fill(row, order.id):
                    found.setdefault(fill.id, fill)
            fills = list(found.values())
            if seen.issuperset(ids) or (len(rows) < _PAGE and total(fills) >= order.filled):
                return fills
            seen.update(ids)
            params["page_token"] = ids[-1]
        raise Malformed(f"more than {_PAGES} pages of fills")

    async def _ask(self, path: str, params: dict[str, str]) -> VendorOrder | None:
        answer = await self._http.read(path, params)
        if answer.status == 404:
            # Another 404 is a wrong address, and would make a working order look lost.
            complaint = read_complaint(answer.body, self._secrets)
            if complaint and complaint.code == _NOT_FOUND and "endpoint" not in complaint.message:
                return None
        return read_order(self._decoded("order", answer))

    async def _json(self, what: str, path: str, params: dict[str, str]) -> Any:
        return self._decoded(what, await self._http.read(path, params))

    def _decoded(self, what: str, answer: Answer) -> Any:
        if answer.status == 200:
            return decode(answer.body)
        complaint = read_complaint(answer.body, self._secrets)
        why = outcomes.said(answer.status, complaint) if complaint else f"HTTP {answer.status}"
        raise BrokerUnavailable(f"Alpaca does not tell the {what}: {why}", status=answer.status)
