"""Work that waits until an answer has left: what an answer hands out counts as handed out only then."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any

from openbell.protocol.call import Afterwards

log = logging.getLogger(__name__)


class Replies:
    """What is to be done when the answers to requests have left, by the request's id."""

    def __init__(self) -> None:
        self._waiting: dict[Any, list[Afterwards]] = defaultdict(list)

    def hold(self, request: Any, work: Afterwards) -> None:
        """Keep work until a request is answered."""
        self._waiting[request].append(work)

    async def left(self, request: Any) -> None:
        """The answer has left: do what waited for it."""
        for work in self._waiting.pop(request, ()):
            try:
                await work()
            except Exception:
                log.exception("what follows an answer failed")

    def lost(self, request: Any) -> None:
        """It will not leave any more."""
        self._waiting.pop(request, None)
