"""`openbell halt` and `openbell resume`: the kill switch, at the operator's shell."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from openbell.cli.app import app, fail, settings_for
from openbell.desk.desk import Desk
from openbell.feeds.registry import feed_of
from openbell.market.errors import OpenbellError
from openbell.market.provenance import Origin


@app.command("halt")
def halt(reason: Annotated[str, typer.Option("--reason", "-r", help="Why; told to whoever is refused.")] = "") -> None:
    """Stop all opening of positions, at once, for every server on this home. Orders that reduce still pass.

    Resting orders that could open something are cancelled. Only `openbell resume` lifts it.
    """
    # A shell may pass bytes that are no text: whatever the reason says, the switch must turn.
    reason = reason.encode(errors="replace").decode()

    async def work(desk: Desk) -> None:
        trading = desk.trading
        # The file first: it needs neither a database nor a broker.
        trading.halt_file.set(reason)
        typer.echo("halted: nothing is opened on this home until openbell resume")
        # Bars that closed before now still fill what they fill: only what is left is cancelled.
        await trading.settle_all()
        await trading.halts.halt(reason)
        if not trading.broker.fills_locally:
            typer.echo(f"cancelling resting orders at {trading.broker.name}: a halt does so also without --trade")
        ended = await trading.halts.enforce(trading.broker)
        said = (
            "1 resting order that could open something was"
            if ended == 1
            else f"{ended} resting orders that could open something were"
        )
        typer.echo(f"{said} cancelled")

    _run(work)


@app.command("resume")
def resume() -> None:
    """Lift `openbell halt`."""
    if settings_for().read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")

    async def work(desk: Desk) -> None:
        stood = await desk.trading.halts.resume()
        stood = desk.trading.halt_file.lift() or stood
        typer.echo("resumed: positions may be opened again" if stood else "trading was not halted")

    _run(work)


def _run(work: Callable[[Desk], Awaitable[None]]) -> None:
    # The switch is the present's, whatever clock or scenario the settings name; halting is allowed to everybody.
    settings = settings_for()
    feed = "none" if feed_of(settings.feed).origin is Origin.REPLAY else settings.feed
    settings = dataclasses.replace(settings, read_only=False, as_of="", replay_speed=0.0, scenario="", feed=feed)

    async def whole() -> None:
        desk = Desk(settings)
        try:
            await work(desk)
        finally:
            await desk.close()

    try:
        asyncio.run(whole())
    except OpenbellError as error:
        fail(error.message)
    except OSError as error:
        fail(f"cannot write to the home {settings.home}: {error.strerror}")
