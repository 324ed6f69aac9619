"""Alpaca behind the port of `trading.broker`.

Reads, which may be retried, are of an order with its replacements and exits, of its fills, and of the account.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from openbell.brokers.alpaca.http import NoAnswer, NotSent, TradingHttp, describe, failure, no_answer, not_sent
from openbell.brokers.alpaca.states import current, exit_report, reachable, report_of, total
from openbell.brokers.alpaca.wire import (
    Complaint,
    MalformedReply,
    VendorOrder,
    activity_id,
    body_of,
    bracket,
    closes_coins,
    decode,
    number,
    read_complaint,
    read_fill,
    read_order,
    sold_of,
)
from openbell.feeds.alpaca.refusals import header_key
from openbell.market.errors import SettingsError
from openbell.net.response import Response
from openbell.trading.broker import BrokerError, BrokerExecution, BrokerUnavailable, OrderReport, OutcomeUnknown
from openbell.trading.orders import Order

PAPER, LIVE = "https://paper-api.alpaca.markets", "https://api.alpaca.markets"
_FOLLOWED = 20
"""How many replacements of an order are followed."""
_PAGE = 100
_PAGES = 100
_DAY = 86_400
"""Fills are requested from this many seconds before the order was placed: Alpaca's clock may differ from ours."""
_NOT_FOUND = 40_410_000


class AlpacaBroker:
    """Orders at Alpaca, in its paper or live account. Reads call `pause` to wait before a retry."""

    name = "alpaca"

    def __init__(
        self,
        key: str,
        secret: str,
        *,
        live: bool = False,
        trading_url: str | None = None,
        timeout: float = 10.0,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.account = "live" if live else "paper"
        who = "the broker alpaca"
        self._keys = (header_key("ALPACA_API_KEY", key, who), header_key("ALPACA_SECRET_KEY", secret, who))
        self._http = TradingHttp(_address(trading_url, live), self._keys, timeout=timeout, pause=pause)
        self._reader = AlpacaReader(self._http, self._keys)

    async def submit(self, order: Order) -> OrderReport:
        """Send an order and its exits once. Raises `BrokerRefused`, `BrokerUnavailable` or `OutcomeUnknown`."""
        quantity = await self._quantity(order)
        answer = await self._act("POST", "/v2/orders", "order", body_of(order, quantity))
        if not _success(answer):
            raise self._failure(answer, "order")
        try:
            taken = read_order(decode(answer.body))
            if taken.client_order_id != order.id:
                raise MalformedReply("it has another client_order_id")
            return reachable(order, report_of(order, [taken], taken.legs, {}))
        except MalformedReply as why:
            raise OutcomeUnknown(f"Alpaca's answer to the order is malformed ({why}): look it up by its id") from None

    async def cancel(self, order: Order) -> None:
        """Request the cancellation of an order; `find` returns its result. Ended and unknown orders are ignored.

        Raises `BrokerRefused`, `BrokerUnavailable` or `OutcomeUnknown`.
        """
        try:
            broker_id = order.broker_id or await self._broker_id(order)
            for _ in range(_FOLLOWED):
                if broker_id is None:
                    return
                answer = await self._act("DELETE", f"/v2/orders/{quote(broker_id, safe='')}", "cancellation")
                if _success(answer) or answer.status == 404:
                    return
                if answer.status != 422:
                    raise self._failure(answer, "cancellation")
                # It can no longer be cancelled: it has ended, or another order has replaced it.
                found = await self._reader.order(broker_id)
                broker_id = found.replaced_by if found and found.status == "replaced" else None
        except MalformedReply as why:
            raise _malformed("order", why) from None

    async def find(self, order: Order) -> OrderReport | None:
        """The state of an order, looked up by our id; None if Alpaca does not have it. Raises `BrokerUnavailable`.

        An exit has no id of ours at Alpaca and is found through its entry.
        """
        try:
            entries, legs = await self._reader.family(order)
            if not entries:
                return None
            if order.role.exit:
                fills = await self._reader.fills([leg for leg in legs if leg.role is order.role], order.placed_at)
                report = exit_report(order.role, entries, legs, fills)
            else:
                fills = await self._reader.fills([*entries, *legs], order.placed_at)
                report = report_of(order, entries, legs, fills)
            return report and reachable(order, report)
        except MalformedReply as why:
            raise _malformed("order", why) from None

    async def equity_and_cash(self) -> dict[str, Decimal]:
        """The account's equity and cash at Alpaca, to compare with our books. Raises `BrokerUnavailable`."""
        try:
            return await self._reader.equity_and_cash()
        except MalformedReply as why:
            raise _malformed("account", why) from None

    async def cash(self) -> Decimal:
        """The cash in the account. Raises `BrokerUnavailable`."""
        return (await self.equity_and_cash())["cash"]

    async def close(self) -> None:
        """Close all connections; the next request opens new ones."""
        await self._http.close()

    async def _quantity(self, order: Order) -> Decimal:
        """The quantity to send: of an order that closes coins, at most what the account has."""
        if not closes_coins(order):
            return order.quantity
        try:
            return sold_of(order, await self._reader.available(order.symbol))
        except MalformedReply as why:
            raise _malformed("position", why) from None

    async def _broker_id(self, order: Order) -> str | None:
        entries, legs = await self._reader.family(order)
        chain = [leg for leg in legs if leg.role is order.role] if order.role.exit else entries
        return current(chain).id if chain else None

    async def _act(self, method: str, path: str, what: str, body: Mapping[str, Any] | None = None) -> Response:
        try:
            return await self._http.act(method, path, body)
        except NotSent as fault:
            raise not_sent(fault, what) from None
        except NoAnswer as fault:
            raise no_answer(fault, what) from None

    def _failure(self, answer: Response, what: str) -> BrokerError:
        return failure(answer, read_complaint(answer.body, self._keys), what, self._http.hint(answer))


def _success(answer: Response) -> bool:
    return 200 <= answer.status < 300


def _malformed(what: str, why: MalformedReply) -> BrokerUnavailable:
    return BrokerUnavailable(
        f"Alpaca's answer about the {what} is malformed ({why}): if this lasts, look for a proxy in between and check "
        "status.alpaca.markets"
    )


def _address(trading_url: str | None, live: bool) -> str:
    """The API's address. Raises `SettingsError` for one without TLS, or one of the other account."""
    url = (trading_url or (LIVE if live else PAPER)).rstrip("/")
    parts = urlsplit(url)
    if parts.hostname == urlsplit(PAPER if live else LIVE).hostname:
        raise SettingsError(f"{parts.hostname} does not serve the {'live' if live else 'paper'} account")
    if parts.scheme != "https" and not (parts.scheme == "http" and _loopback(parts.hostname)):
        raise SettingsError("the address of Alpaca's trading API must begin with https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError("the address of Alpaca's trading API must consist of a host and a path only")
    return url


def _loopback(host: str | None) -> bool:
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


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

    async def available(self, symbol: str) -> Decimal | None:
        """How much of a position in coins no other order will sell; None if there is no position."""
        answer = await self._http.read(f"/v2/positions/{symbol.replace('/', '')}", {})
        if answer.status == 404 and _is_missing(read_complaint(answer.body, self._secrets)):
            return None
        position = self._decoded("position", answer)
        if not isinstance(position, dict):
            raise MalformedReply("not a position")
        return number(position.get("qty_available"))

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
        if answer.status == 404 and _is_missing(read_complaint(answer.body, self._secrets)):
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


def _is_missing(complaint: Complaint | None) -> bool:
    """Returns True if Alpaca says that it has no such order or position.

    Any other 404 is a wrong address: it must not make a working order look lost.
    """
    return complaint is not None and complaint.code == _NOT_FOUND and "endpoint" not in complaint.message
