"""Requests to the trading API. Orders and cancellations are sent once; reads are retried.

A failed request was either not sent (`NotSent`) or may have arrived (`NoAnswer`), which includes every uncertain case.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openbell.feeds.alpaca.session import CONNECT, Session
from openbell.feeds.pacing import Budget, backoff, retry_after
from openbell.trading.broker import BrokerUnavailable

log = logging.getLogger(__name__)

PER_MINUTE = 200
TRIES = 3
PATIENCE = 10.0
"""The longest wait before a retry, in seconds; if more is needed, the read raises `BrokerUnavailable`."""
LARGEST = 4_000_000
"""The largest answer in bytes; a full page of fills has about 40,000."""


class NotSent(Exception):
    """The request was not sent. The text is the kind of failure, never an address or a header."""


class NoAnswer(Exception):
    """The request was sent at least in part, and no complete answer came back."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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
        self._url = url
        self._whole = 2 * timeout + CONNECT
        """Seconds for the whole request: with a read timeout alone, a slow answer could go on for ever."""
        self._acts, self._reads = Session(headers, timeout), Session(headers, timeout)
        self._budget = Budget(PER_MINUTE)
        self._pause = pause
        self._chance = random.Random()  # noqa: S311 - spreads retries, decides nothing

    async def act(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        """Send a request once, without waiting for the budget. Raises `NotSent` or `NoAnswer`."""
        if body is None:
            return await self._once(self._acts, method, path)
        kind = {"Content-Type": "application/json"}
        return await self._once(self._acts, method, path, content=json.dumps(body).encode(), headers=kind)

    async def read(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
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

    def hint(self, answer: Answer) -> float | None:
        """The seconds after which Alpaca accepts requests again; None if unknown."""
        return retry_after(answer.headers) or self._budget.wait(time.monotonic()) or None

    async def close(self) -> None:
        """Close the connections."""
        await self._acts.close()
        await self._reads.close()

    async def _once(self, session: Session, method: str, path: str, **rest: Any) -> Answer:
        import httpx2

        headers: Mapping[str, str] = {}
        async with session.client() as client:
            self._budget.take(time.monotonic())
            try:
                async with (
                    asyncio.timeout(self._whole),
                    client.stream(method, self._url + path, follow_redirects=False, **rest) as response,
                ):
                    headers = response.headers
                    body = bytearray()
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > LARGEST:
                            raise NoAnswer("the answer is too large")
                    answer = Answer(response.status_code, headers, bytes(body))
            except (
                httpx2.ConnectError,
                httpx2.ConnectTimeout,
                httpx2.PoolTimeout,
                httpx2.ProxyError,
                httpx2.UnsupportedProtocol,
                httpx2.InvalidURL,
            ) as error:
                # Only the class: the text may hold an address or a header.
                raise NotSent(type(error).__name__) from None
            except (httpx2.HTTPError, httpx2.StreamError, TimeoutError, OSError, ValueError) as error:
                raise NoAnswer(type(error).__name__) from None
            finally:
                self._budget.answered(headers, time.monotonic())
        if answer.status == 429 and (wait := retry_after(headers)):
            self._budget.hold(wait, time.monotonic())
        return answer
