"""The session: one client's connection, its principal, and the work to run after its responses have been sent.

Every call needs one. A transport creates a session when a client connects and gives it a principal: there is no default.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from openbell.desk.settings.principals import OPERATOR
from openbell.stores.access.scopes import with_included

if TYPE_CHECKING:
    from openbell.desk.alerts.inbox import Inbox, InboxReader

Notify = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification (method, parameters) to the client. Raises `OSError` if the client has disconnected."""
Afterwards = Callable[[], Awaitable[None]]
"""Work that runs after a response has been sent, such as marking its notifications as delivered."""
log = logging.getLogger(__name__)


class Scope(StrEnum):
    """A permission of a principal."""

    READ = "read"
    WRITE = "write"
    """Store decisions, specs, pictures and subscriptions; no orders."""
    TRADE = "trade"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a tool and its permissions. Orders, alerts, decisions and subscriptions belong to a principal."""

    subject: str
    scopes: frozenset[Scope]
    anonymous: bool = False
    """True if nobody has signed in: it reads as the subject, and changes nothing of it."""
    client: str = field(default="", compare=False)
    """The OAuth client whose token it is, for the audit log."""
    token: str = field(default="", compare=False)
    """The name of the token of `openbell token`, for the audit log."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scopes", frozenset(map(Scope, with_included(self.scopes))))


LOCAL_OPERATOR = Principal(OPERATOR, frozenset(Scope))
"""The person who starts a server on this machine; has every scope."""


class Session:
    """One client's connection. Pushes, replies and the inbox cursor belong to it."""

    def __init__(
        self,
        principal: Principal,
        notify: Notify,
        replies: Replies,
        connection: Session | None = None,
        *,
        stateless: bool = False,
    ) -> None:
        """The transport calls `replies.sent` after each response.

        `connection` is the session whose inbox cursor this one shares, if a client uses several, one for each request.
        `stateless`: any process may answer the client's next request, so that subscriptions must be stored.
        """
        self.stateless = stateless
        self.principal = principal
        self.notify = notify
        self.replies = replies
        self._connection = connection
        self._reader: InboxReader | None = None

    def reader(self, inbox: Inbox) -> InboxReader:
        """Returns the principal's inbox with this connection's cursor."""
        if self._connection is not None:
            return self._connection.reader(inbox)
        if self._reader is None:
            self._reader = inbox.reader(self.principal.subject)
        return self._reader


async def no_notifications(_method: str, _params: dict[str, Any]) -> None:
    """Discards the notification: for clients that make one call and exit, such as the command line."""


class Replies:
    """The work to run after each response has been sent, by the request's id."""

    def __init__(self) -> None:
        self._waiting: dict[Any, list[Afterwards]] = defaultdict(list)

    def hold(self, request: Any, work: Afterwards) -> None:
        """Keep work until the response to a request has been sent."""
        self._waiting[request].append(work)

    async def sent(self, request: Any) -> None:
        """Run the work of a request whose response has been sent. Errors are logged."""
        for work in self._waiting.pop(request, ()):
            try:
                await work()
            except Exception:
                log.exception("work after a response failed")

    def discard(self, request: Any) -> None:
        """Drop the work of a request whose response could not be sent."""
        self._waiting.pop(request, None)
