"""`openbell mcp SERVER`: one MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from openbell.cli.app import AsOf, InScenario, ReadOnly, Trade, app, plain_errors, service_settings
from openbell.cli.process_memory import collector_paused, tune_allocator
from openbell.cli.shutdown import on_stop_of
from openbell.servers import NAMES, load


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
    settings = service_settings(as_of, read_only, trade, scenario)
    with collector_paused():
        with plain_errors():
            service = load(server, underscore_names=settings.underscore_names)
        from openbell.desk.desk import Desk
        from openbell.protocol.server import build, one_client
        from openbell.protocol.service import Runner
        from openbell.protocol.session import LOCAL_OPERATOR, Replies

        # The pipe is for the protocol alone: what others print goes to the log.
        sys.stdout = sys.stderr
        desk = Desk(settings)
        if settings.trade:
            with plain_errors():
                # What cannot trade says so now, not at the first order.
                _ = desk.trading.venue
        replies = Replies()
        sdk_server = build(Runner(service, desk), one_client(LOCAL_OPERATOR, replies))
    tune_allocator()
    asyncio.run(_serve(sdk_server, desk, replies, service))


async def _serve(server: Any, desk: Any, replies: Any, service: Any) -> None:
    """Until the input ends or the process is told to stop."""
    from openbell.protocol.stdio import serve

    loop = asyncio.get_running_loop()
    # Each more would hold memory of its own.
    loop.set_default_executor(ThreadPoolExecutor(2, "others"))
    stop = asyncio.Event()
    on_stop_of(desk, stop.set)
    async with desk:
        if desk.settings.trade:
            desk.trading.start()
        service.begin(desk)
        await serve(server, stop, replies)
