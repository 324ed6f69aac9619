"""Alpaca behind the port of `trading.broker`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from openbell.brokers.alpaca.http import NoAnswer, NotSent, TradingHttp, failure, no_answer, not_sent
from openbell.brokers.alpaca.reader import AlpacaReader
from openbell.brokers.alpaca.states import current, exit_report, reachable, report_of
from openbell.brokers.alpaca.wire import MalformedReply, body_of, decode, read_complaint, read_order
from openbell.feeds.alpaca.refusals import header_key
from openbell.market.errors import SettingsError
from openbell.net.response import Response
from openbell.trading.broker import BrokerError, BrokerUnavailable, OrderReport, OutcomeUnknown
from openbell.trading.orders import Order

PAPER, LIVE = "https://paper-api.alpaca.markets", "https://api.alpaca.markets"
_FOLLOWED = 20
"""How many replacements of an order a cancellation follows."""


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
        answer = await self._act("POST", "/v2/orders", "order", body_of(order))
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
