"""`openbell mcp SERVER`: one MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, plain_errors, settings_for
from openbell.cli.entry import collector_paused
from openbell.servers import NAMES, load

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of glibc's malloc.h."""


@app.command("mcp")
def mcp(
    server: Annotated[str, typer.Argument(help=f"Which server: {', '.join(NAMES)}.")],
    trade: Trade = False,
    read_only: ReadOnly = False,
    as_of: AsOf = None,
    scenario: InScenario = None,
) -> None:
    """Serve one MCP server on standard input and output.

    Add it to a client's configuration as the command "openbell" with the arguments "mcp" and the server's name.
    """
    settings = settings_for(as_of, read_only, trade, scenario)
    with collector_paused():
        with plain_errors():
            service = load(server, underscore_names=settings.underscore_names)
        from openbell.desk.desk import Desk
        from openbell.protocol.replies import Replies
        from openbell.protocol.server import build, one_client
        from openbell.protocol.service import Runner
        from openbell.protocol.session import LOCAL_OPERATOR

        desk = Desk(settings)
        if settings.trade:
            with plain_errors():
                # What cannot trade says so now, not at the first order.
                _ = desk.trading.venue
        replies = Replies()
        sdk_server = build(Runner(service, desk), one_client(LOCAL_OPERATOR, replies))
    _tune_allocator()
    asyncio.run(_serve(sdk_server, desk, replies, service.start))


async def _serve(server: Any, desk: Any, replies: Any, start: Any) -> None:
    """Until the input ends or the process is told to stop."""
    from openbell.protocol.stdio import serve

    loop = asyncio.get_running_loop()
    # Each more would hold memory of its own.
    loop.set_default_executor(ThreadPoolExecutor(2, "others"))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, stop.set)
    async with desk:
        if desk.settings.trade:
            desk.trading.start()
        if start is not None:
            start(desk)
        await serve(server, stop, replies)


def _tune_allocator() -> None:
    """Set the C library's allocator: one heap for all threads, of which up to 8 MB stay when they are free.

    A picture takes arrays of some hundred kilobytes by the dozen. Handed back to the system each time, they cost a
    quarter of its drawing in page faults. Arrays of a megabyte and more are handed back at once.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # not glibc
        return
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 1024 * 1024), (_TRIM_THRESHOLD, 8 * 1024 * 1024)):
        mallopt(option, value)
