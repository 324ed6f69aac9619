"""Work that runs after a response has been sent, such as marking its notifications as delivered."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

log = logging.getLogger(__name__)

Afterwards = Callable[[], Awaitable[None]]


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
