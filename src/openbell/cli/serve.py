"""`openbell mcp SERVER`: one MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import gc
import signal
from typing import Annotated, Any

import typer

from openbell.cli.app import AsOf, ReadOnly, Trade, app, said_plainly, settings_for
from openbell.servers import NAMES, load


@app.command("mcp")
def mcp(
    server: Annotated[str, typer.Argument(help=f"Which server: {', '.join(NAMES)}.")],
    trade: Trade = False,
    read_only: ReadOnly = False,
    as_of: AsOf = None,
) -> None:
    """Serve one MCP server on standard input and output.

    Add it to a client's configuration as the command "openbell" with the arguments "mcp" and the server's name.
    """
    settings = settings_for(as_of, read_only, trade)
    with said_plainly():
        service = load(server)
    from openbell.desk.desk import Desk
    from openbell.protocol.server import build

    desk = Desk(settings)
    sdk_server = build(service, desk)
    gc.freeze()
    gc.enable()
    asyncio.run(_serve(sdk_server, desk))


async def _serve(server: Any, desk: Any) -> None:
    """Until the input ends or the process is told to stop."""
    from openbell.protocol.stdio import serve

    task = asyncio.ensure_future(serve(server))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, task.cancel)
        except NotImplementedError:  # Windows
            break
    try:
        await task
    except asyncio.CancelledError:
        return
    finally:
        await desk.close()
