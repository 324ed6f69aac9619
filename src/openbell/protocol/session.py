"""The session: one client's connection, the principal that it acts for, and what follows its responses.

Every call needs one. A transport makes a session when a client connects, and says who the client is: there is no default.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from openbell.desk.principals import OPERATOR
from openbell.protocol.replies import Replies

if TYPE_CHECKING:
    from openbell.desk.trading.inbox import Inbox, Reader

Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to the client: method and parameters. Raises `OSError` if the client is gone."""


class Scope(StrEnum):
    """What a principal may do."""

    READ = "read"
    TRADE = "trade"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who makes a call. Orders, alerts, decisions and subscriptions belong to one."""

    subject: str
    scopes: frozenset[Scope]


LOCAL_OPERATOR = Principal(OPERATOR, frozenset(Scope))
"""Whoever starts a server on this machine may do everything with its desk."""


class Session:
    """One client's connection. Pushes, replies and the place in the inbox belong to it."""

    def __init__(self, principal: Principal, notify: Notify, replies: Replies) -> None:
        """`replies` is told by the transport when a response has left."""
        self.principal = principal
        self.notify = notify
        self.replies = replies
        self._reader: Reader | None = None

    def reader(self, inbox: Inbox) -> Reader:
        """The principal's inbox, as this connection reads it."""
        if self._reader is None:
            self._reader = inbox.reader(self.principal.subject)
        return self._reader


async def nowhere(_method: str, _params: dict[str, Any]) -> None:
    """Notifies nobody: for a client that is gone once it has its answer, such as the command line."""
