"""Requests to the trading API, and the error of each failed one. Orders and cancellations are sent once; reads are retried.

A failed request was either not sent (`NotSent`) or may have arrived (`NoAnswer`), which includes every uncertain case.

| answer to an order or a cancellation | error |
|---|---|
| 400, 401, 403, 404, 422 in Alpaca's own form | `BrokerRefused`: nothing was done |
| … saying that the client_order_id exists already | `OutcomeUnknown`: Alpaca has an order with our id; `find` returns it |
| 429 | `BrokerUnavailable`: not accepted, with the seconds until a retry |
| any other failure: 3xx, 5xx, a proxy's page | `OutcomeUnknown` |
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from openbell.brokers.alpaca.wire import Complaint
from openbell.feeds.alpaca.refusals import KEYS_REFUSED
from openbell.net.http import HttpClient, HttpFailed, HttpFault, RequestBounds
from openbell.net.rates import Budget, backoff, retry_after
from openbell.net.response import Response
from openbell.trading.broker import BrokerError, BrokerRefused, BrokerUnavailable, OutcomeUnknown

log = logging.getLogger(__name__)

PER_MINUTE = 200
TRIES = 3
PATIENCE = 10.0
"""The longest wait before a retry, in seconds; if more is needed, the read raises `BrokerUnavailable`."""
LARGEST = 4_000_000
"""The largest answer in bytes; a full page of fills has about 40,000."""
_REFUSALS = frozenset({400, 401, 403, 404, 422})
_ID_EXISTS = re.compile(r"client[ _-]?order[ _-]?id.*(unique|exist|duplicate|used)", re.IGNORECASE)
_WAIT = 60.0
"""Seconds until a retry, if Alpaca does not name them: the length of its rate limit window."""
_LOOK_UP = "look it up by its id, do not send it again"


class NotSent(Exception):
    """The request was not sent. The text is the kind of failure, never an address or a header."""


class NoAnswer(Exception):
    """The request was sent at least in part, and no complete answer came back."""


class TradingHttp:
    """The API of one account. Orders and cancellations have connections of their own and never wait for a read."""

    def __init__(
        self,
        url: str,
        keys: tuple[str, str],
        *,
        timeout: float,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        # Uncompressed, so that the size of an answer can be checked while it is received.
        headers = {"APCA-API-KEY-ID": keys[0], "APCA-API-SECRET-KEY": keys[1], "Accept-Encoding": "identity"}
        # With the time without a byte alone, a slow answer could go on for ever.
        bounds = RequestBounds(2 * timeout + 3.0, part=timeout, largest=LARGEST, connections=5)
        self._acts = HttpClient(url, headers, bounds, decode=True)
        self._reads = HttpClient(url, headers, bounds, decode=True)
        self._budget = Budget(PER_MINUTE)
        self._pause = pause
        self._chance = random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def act(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Response:
        """Send a request once, without waiting for the budget. Raises `NotSent` or `NoAnswer`."""
        if body is None:
            return await self._once(self._acts, method, path)
        kind = {"Content-Type": "application/json"}
        return await self._once(self._acts, method, path, body=json.dumps(body).encode(), headers=kind)

    async def read(self, path: str, params: Mapping[str, str] | None = None) -> Response:
        """Send a GET request, with retries after timeouts, 408, 429 and 5xx. Raises `BrokerUnavailable`."""
        fault = ""
        for attempt in range(TRIES):
            wait = self._budget.wait(time.monotonic())
            if attempt:
                wait = max(wait, backoff(attempt - 1, self._chance.random()))
            if wait > PATIENCE:
                raise BrokerUnavailable(
                    f"the limit of requests to Alpaca is reached: try again in {wait:.0f} s", retry_after_s=wait
                )
            if wait:
                log.info("Alpaca: %s; retrying in %.1f s", fault or "request limit reached", wait)
                await self._pause(wait)
            try:
                answer = await self._once(self._reads, "GET", path, params=dict(params or {}))
            except (NotSent, NoAnswer) as error:
                fault = str(error)
                continue
            if not (answer.status in {408, 429} or answer.status >= 500):
                return answer
            fault = f"HTTP {answer.status}"
        raise BrokerUnavailable(
            f"Alpaca does not answer ({fault}, {TRIES} tries): try again later; "
            "if this lasts, check this machine's network and status.alpaca.markets"
        )

    def hint(self, answer: Response) -> float | None:
        """The seconds after which Alpaca accepts requests again; None if unknown."""
        return retry_after(answer.headers) or self._budget.wait(time.monotonic()) or None

    async def close(self) -> None:
        """Close the connections."""
        await self._acts.close()
        await self._reads.close()

    async def _once(self, client: HttpClient, method: str, path: str, **rest: Any) -> Response:
        headers: Mapping[str, str] = {}
        async with client.turn():
            self._budget.take(time.monotonic())
            try:
                answer = await client.send(method, path, **rest)
                headers = answer.headers
            except HttpFailed as error:
                if not error.sent:
                    raise NotSent(str(error)) from None
                raise NoAnswer(
                    "the answer is too large" if error.fault is HttpFault.LARGE_BODY else str(error)
                ) from None
            finally:
                self._budget.answered(headers, time.monotonic())
        if answer.status == 429 and (wait := retry_after(headers)):
            self._budget.hold(wait, time.monotonic())
        return answer


def failure(answer: Response, complaint: Complaint | None, what: str, hint: float | None) -> BrokerError:
    """The error for a failed answer to `what`, an order or a cancellation; `hint` is the seconds until a retry."""
    status = answer.status
    if status == 429:
        wait = hint or _WAIT
        return BrokerUnavailable(
            f"Alpaca's limit of requests is reached and it did not accept the {what}: try again in {wait:.0f} s",
            status=status,
            retry_after_s=wait,
        )
    if complaint is None or status not in _REFUSALS:
        return OutcomeUnknown(
            f"Alpaca's answer to the {what} (HTTP {status}) leaves its outcome unknown: {_LOOK_UP}", status=status
        )
    if _ID_EXISTS.search(complaint.message):
        return OutcomeUnknown(
            f"Alpaca already has an order with this id: {_LOOK_UP}", status=status, code=complaint.code
        )
    message = f"Alpaca refused the {what}: {describe(status, complaint)}"
    return BrokerRefused(message, status=status, code=complaint.code)


def describe(status: int, complaint: Complaint) -> str:
    """Alpaca's message and status, with advice if they are about the keys."""
    about_keys = status == 401 or complaint.message.lower().rstrip(".") in {"forbidden", "unauthorized"}
    return f"{complaint.message} (HTTP {status}){'. ' + KEYS_REFUSED if about_keys else ''}"


def not_sent(fault: object, what: str) -> BrokerUnavailable:
    """The error for an order or a cancellation that was not sent."""
    return BrokerUnavailable(
        f"Alpaca cannot be reached ({fault}), the {what} was not sent: check this machine's network and try again"
    )


def no_answer(fault: object, what: str) -> OutcomeUnknown:
    """The error for an order or a cancellation that may have arrived."""
    return OutcomeUnknown(f"The {what} was sent and Alpaca did not answer ({fault}): {_LOOK_UP}")
