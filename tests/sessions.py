"""Sessions of calls that tests make in their own process."""

from __future__ import annotations

from typing import Any

from openbell.protocol.dialects import Reply
from openbell.protocol.service import Runner
from openbell.protocol.session import LOCAL_OPERATOR, Principal, Replies, Session, no_notifications


def session(principal: Principal = LOCAL_OPERATOR) -> Session:
    """A new client's."""
    return Session(principal, no_notifications, Replies())


async def answered(
    runner: Runner, tool: str, arguments: dict[str, Any], principal: Principal = LOCAL_OPERATOR
) -> Reply:
    """The reply to a new client, which has arrived there."""
    client = session(principal)
    reply = await runner.run(tool, arguments, client)
    await client.replies.sent(None)
    return reply
