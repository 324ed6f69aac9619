"""A home for the gateway to serve: principals with tokens and subscriptions, and alerts that fire on request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from openbell.desk.alerts.service import Condition
from openbell.desk.desk import Desk
from openbell.desk.settings import load
from openbell.desk.settings.access import make_access
from openbell.gateway.oauth.secret_texts import STATIC, digest, new_secret
from openbell.market.clock import iso
from openbell.stores.access import static_tokens
from openbell.stores.access.static_tokens import StaticToken
from openbell.stores.records.journal import Journal
from openbell.trading.alerts import Alert, AlertFilter, AlertState, Firing, Type, notification

T = TypeVar("T")


class Home:
    """A home with a token and a subscription for each of some principals."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.tokens = [new_secret(STATIC) for _ in range(count)]
        self._subjects = [f"person-{number}" for number in range(count)]
        asyncio.run(self._add_tokens())
        self._run(self._subscribe)

    def variables(self, **more: str) -> dict[str, str]:
        return {"OPENBELL_HOME": str(self.folder), **more}

    def alerts(self, count: int) -> list[Alert]:
        """An alert for each of the first principals, which its price never reaches."""

        async def work(desk: Desk) -> list[Alert]:
            far = Condition(Type.PRICE_ABOVE, 1e9)
            return [await desk.trading.alerts.set(each, "AAPL", "1m", far) for each in self._subjects[:count]]

        return self._run(work)

    def fire(self, alerts: list[Alert]) -> float:
        """Fire alerts in one transaction, as the engine of another process does; returns when it was committed."""

        async def work(desk: Desk) -> float:
            now = time.time()

            def fired(journal: Journal) -> None:
                for alert in alerts:
                    done = replace(alert, state=AlertState.FIRED, fired_at=now, value=1.0, bar_hash="", updated_at=now)
                    cursor = journal.put("alert", done, happened=now)
                    body = notification(Firing(done, 0, 1.0, now), iso(now))
                    desk.trading.inbox.deliver(journal, done, cursor, body, now)

            await desk.trading.records.read(lambda _view: None)  # opens the database
            await desk.trading.records.write(fired)
            return time.monotonic()

        return self._run(work)

    def _run(self, work: Callable[[Desk], Awaitable[T]]) -> T:
        async def run() -> T:
            async with Desk(load(self.variables(), trade=True)) as desk:
                return await work(desk)

        return asyncio.run(run())

    async def _add_tokens(self) -> None:
        store = make_access(load(self.variables(), trade=True))
        for text, subject in zip(self.tokens, self._subjects, strict=True):
            token = StaticToken(subject, subject, frozenset({"read", "trade"}), digest(text), time.time(), None)
            await store.write(lambda connection, token=token: static_tokens.add(connection, token))  # type: ignore[misc]
        await store.close()

    async def _subscribe(self, desk: Desk) -> None:
        for subject in self._subjects:
            await desk.trading.inbox.subscribe(subject, AlertFilter())
