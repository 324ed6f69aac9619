"""Ends the streams of clients whose tokens have ended: a token is checked when its stream opens, and then twice a second."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from openbell.gateway.admission import TokenCheck
from openbell.gateway.streamable.channels import PushStream

log = logging.getLogger(__name__)

_SECONDS = 0.5


class TokenRechecks:
    """The permits of open streams, all checked by one task."""

    def __init__(self) -> None:
        self._held: dict[PushStream, TokenCheck] = {}
        self._checking: asyncio.Task[None] | None = None

    def add(self, stream: PushStream, permit: TokenCheck) -> None:
        """Begin to check the permit of a stream."""
        self._held[stream] = permit
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="permits")

    def remove(self, stream: PushStream) -> None:
        """Stop checking."""
        self._held.pop(stream, None)

    def close(self) -> None:
        """Stop checking all permits."""
        if self._checking is not None:
            self._checking.cancel()

    async def _check(self) -> None:
        while self._held:
            await asyncio.sleep(_SECONDS)
            holds: dict[Any, bool] = {}  # many streams have the same token
            for stream, permit in list(self._held.items()):
                if permit.key not in holds:
                    holds[permit.key] = await self._holds(permit)
                if not holds[permit.key]:
                    stream.end()

    async def _holds(self, permit: TokenCheck) -> bool:
        try:
            return await permit.holds()
        except Exception:
            log.exception("the token of a stream could not be checked")
            return True
