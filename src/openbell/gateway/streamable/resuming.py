"""GET with the id of an event of a response: sends the rest of a response whose connection was closed."""

from __future__ import annotations

import asyncio

from openbell.gateway.streamable import wire
from openbell.gateway.streamable.sessions import StreamLog


async def resume(log: StreamLog, number: int, receive: wire.Receive, send: wire.Send, headers: wire.Headers) -> None:
    """Send the events after a number until the response has ended or the client disconnects."""
    await wire.begin_events(send, headers)
    gone = asyncio.ensure_future(wire.disconnected(receive))
    later = asyncio.ensure_future(log.later(number))
    try:
        while True:
            await asyncio.wait({gone, later}, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return
            if not (events := later.result()):
                await wire.part(send, b"", last=True)
                return
            for at, message in events:
                await wire.part(send, wire.event(message, log.name(at)))
            later = asyncio.ensure_future(log.later(events[-1][0]))
    finally:
        gone.cancel()
        later.cancel()
