"""`openbell halt` and `openbell resume`: the kill switch, at the operator's shell."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from openbell.cli.app import app, fail, said_plainly, settings_for
from openbell.desk.desk import Desk


@app.command("halt")
def halt(reason: Annotated[str, typer.Option("--reason", "-r", help="Why; told to whoever is refused.")] = "") -> None:
    """Stop all opening of positions, at once and for every server on this desk. Orders that reduce still pass.

    Resting orders that could open something are cancelled. Only `openbell resume` lifts it.
    """

    async def work(desk: Desk) -> int:
        return await desk.trading.halts.halt(reason)

    ended = _run(work)
    typer.echo(f"halted; {ended} resting orders cancelled. Lift it with: openbell resume")


@app.command("resume")
def resume() -> None:
    """Lift `openbell halt`."""

    async def work(desk: Desk) -> bool:
        return await desk.trading.halts.resume()

    typer.echo("resumed: positions may be opened again" if _run(work) else "trading was not halted")


def _run(work: Callable[[Desk], Awaitable[int]]) -> int:
    settings = settings_for()
    if settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")

    async def whole() -> int:
        desk = Desk(settings)
        try:
            return await work(desk)
        finally:
            await desk.close()

    with said_plainly():
        return asyncio.run(whole())
