"""Sends the rest of a response whose connection was closed before its end."""

from __future__ import annotations

import asyncio
from typing import Any

from openbell.gateway.streamable import wire
from openbell.gateway.streamable.exchange import PING_SECONDS
from openbell.gateway.streamable.sessions import StreamLog


async def resume(log: StreamLog, number: int, receive: wire.Receive, send: wire.Send) -> None:
    """Send the events of a log after a number, until its end or until the client disconnects."""
    await wire.begin_events(send)
    gone = asyncio.ensure_future(wire.disconnected(receive))
    try:
        while not gone.done():
            changed = log.changed  # before the log is read: a later event sets it
            for at, name, message in log.after(number):
                await wire.part(send, wire.event(message, name))
                number = at
            if log.ended and not log.after(number):
                await wire.part(send, b"", last=True)
                return
            if not await _first_of(gone, changed):
                await wire.part(send, wire.KEEP_ALIVE)
    finally:
        gone.cancel()


async def _first_of(gone: asyncio.Future[None], changed: asyncio.Event) -> bool:
    """Wait until one of them is done; returns False if neither is after 15 s."""
    waiting = asyncio.ensure_future(changed.wait())
    either: set[asyncio.Future[Any]] = {gone, waiting}
    try:
        done, _ = await asyncio.wait(either, timeout=PING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return bool(done)
