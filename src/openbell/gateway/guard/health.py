"""/healthz: the process answers. /readyz: its stores can be used; otherwise 503 with the names of those that fail.
/health: the whole report, for this home's owner and for admins.

The first two are open to everyone who passes the checks of Host and Origin, so they name parts and never causes, which may
hold addresses or user names. Causes are logged.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.types import Receive, Scope, Send

from openbell.gateway.guard.refusals import GuardRefusal

if TYPE_CHECKING:
    from openbell.desk.events.checks import Checks
    from openbell.desk.operations.health.monitor import DeskHealth

Headers = list[tuple[bytes, bytes]]
_FORBIDDEN = GuardRefusal(
    403, "forbidden", "/health is served to `openbell health` and to tokens with the scope admin."
)


async def healthz(_scope: Scope, _receive: Receive, send: Send) -> None:
    """The ASGI application of /healthz."""
    await _answer(send, 200, {"status": "ok"})


class Readiness:
    """The ASGI application of /readyz. All requests within a second get the answer of the same checks."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        failing = await self._checks.failing()
        if failing:
            await _answer(send, 503, {"status": "not ready", "failing": failing})
        else:
            await _answer(send, 200, {"status": "ready"})


class HealthReport:
    """The ASGI application of /health: the report with causes and figures, as `openbell health` prints it."""

    def __init__(self, health: DeskHealth, may_watch: Callable[[Scope], Awaitable[Headers | None]]) -> None:
        """`may_watch` returns headers to send, and None if the request has neither the home's key nor the scope admin."""
        self._health = health
        self._may_watch = may_watch

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        headers = await self._may_watch(scope)
        if headers is None:
            await _FORBIDDEN.send(send)
        else:
            await _answer(send, 200, (await self._health.look()).payload(), headers)


async def _answer(send: Send, status: int, payload: dict[str, Any], more: Headers | None = None) -> None:
    body = json.dumps(payload).encode()
    headers = [
        *(more or []),
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
