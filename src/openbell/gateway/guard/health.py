"""/healthz: the process answers. /readyz: its stores can be used; otherwise 503 with the names of those that fail.

Both are open to everyone who passes the checks of Host and Origin, so they name parts and never causes, which may hold
addresses or user names. Causes are logged.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.types import Receive, Scope, Send

from openbell.desk.readiness import Checks


async def healthz(_scope: Scope, _receive: Receive, send: Send) -> None:
    """The ASGI application of /healthz."""
    await _answer(send, 200, {"status": "ok"})


class Readiness(Checks):
    """The ASGI application of /readyz. All requests within a second get the answer of the same checks."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """See ASGI."""
        failing = await self.failing()
        if failing:
            await _answer(send, 503, {"status": "not ready", "failing": failing})
        else:
            await _answer(send, 200, {"status": "ready"})


async def _answer(send: Send, status: int, payload: dict[str, Any]) -> None:
    body = json.dumps(payload).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
