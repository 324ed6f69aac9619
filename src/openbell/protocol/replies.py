"""Work that waits until a response has left: what it hands out counts as handed out only then."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

log = logging.getLogger(__name__)

Afterwards = Callable[[], Awaitable[None]]


class Replies:
    """What is to be done when the responses to requests have left, by the request's id."""

    def __init__(self) -> None:
        self._waiting: dict[Any, list[Afterwards]] = defaultdict(list)

    def hold(self, request: Any, work: Afterwards) -> None:
        """Keep work until a request is answered."""
        self._waiting[request].append(work)

    async def left(self, request: Any) -> None:
        """The response has left: do what waited for it."""
        for work in self._waiting.pop(request, ()):
            try:
                await work()
            except Exception:
                log.exception("what follows a response failed")

    def lost(self, request: Any) -> None:
        """The response will not leave any more."""
        self._waiting.pop(request, None)
