"""`openbell halt` and `openbell resume`: the kill switch, at the operator's shell."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, settings_for
from openbell.desk.desk import Desk
from openbell.feeds.registry import feed_of
from openbell.market.errors import OpenbellError
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.desk.settings import Settings


@app.command("halt")
def halt(reason: Annotated[str, typer.Option("--reason", "-r", help="Why; told to whoever is refused.")] = "") -> None:
    """Stop all opening of positions, at once, for every server on this home. Orders that reduce still pass.

    Resting orders that could open something are cancelled, in every market of the home. In scenarios nothing new is
    accepted, and what rests there stays as it is. Only `openbell resume` lifts it.
    """
    # A shell may pass bytes that are no text: whatever the reason says, the switch must turn.
    reason = reason.encode(errors="replace").decode()
    settings = _of_the_present()
    try:
        # The file first: it needs neither a database nor a broker.
        Desk(settings).trading.halt_file.set(reason)
    except OSError as error:
        fail(f"cannot write to the home {settings.home}: {error.strerror}")
    typer.echo("halted: nothing is opened on this home until openbell resume")

    async def work(desk: Desk) -> None:
        trading = desk.trading
        # Bars that closed before now still fill what they fill: only what is left is cancelled.
        await trading.settle_all()
        await trading.halts.halt(reason)
        ended = 0
        for venue in trading.venues:
            if venue.remote:
                typer.echo(f"cancelling resting orders at {venue.name}: a halt does so also without --trade")
            ended += await trading.halts.enforce(venue)
        said = (
            "1 resting order that could open something was"
            if ended == 1
            else f"{ended} resting orders that could open something were"
        )
        typer.echo(f"{said} cancelled{_where(desk.settings)}")
        for name, count in (await trading.halts.resting_elsewhere(trading.venues)).items():
            orders = "1 order that could open something rests" if count == 1 else f"{count} such orders rest"
            typer.echo(f"{orders} at {name}: OPENBELL_BROKER={name} openbell halt cancels there", err=True)

    _in_every_market(settings, work)


@app.command("resume")
def resume() -> None:
    """Lift `openbell halt`."""
    if settings_for().read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    settings = _of_the_present()
    stood = False

    async def work(desk: Desk) -> None:
        nonlocal stood
        stood = await desk.trading.halts.resume() or stood
        stood = desk.trading.halt_file.lift() or stood  # after the first market's records, those of these settings

    _in_every_market(settings, work)
    typer.echo("resumed: positions may be opened again" if stood else "trading was not halted")


def _of_the_present() -> Settings:
    """The switch is the present's, whatever clock or scenario the settings name; halting is allowed to everybody."""
    settings = settings_for()
    feed = "none" if feed_of(settings.feed).origin is Origin.REPLAY else settings.feed
    return dataclasses.replace(settings, read_only=False, as_of="", replay_speed=0.0, scenario="", feed=feed)


def _in_every_market(settings: Settings, work: Callable[[Desk], Awaitable[None]]) -> None:
    """Do it in every market of the home, that of the settings first; whatever fails is told at the end."""
    from openbell.desk.trading.record_locations import markets

    failures = []

    async def attempt(each: Settings) -> None:
        try:
            async with Desk(each) as desk:
                await work(desk)
        except OpenbellError as error:
            failures.append(f"{error.message}{_where(each)}")
        except OSError as error:
            failures.append(f"cannot write to the home {each.home}: {error.strerror}")

    async def whole() -> None:
        await attempt(settings)
        try:
            others = (await markets(settings))[1:]
        except OpenbellError as error:
            others = []
            if not failures:
                failures.append(error.message)
        for each in others:
            await attempt(each)

    asyncio.run(whole())
    if failures:
        fail("\n".join(failures))


def _where(settings: Settings) -> str:
    """Which market, where it is not obvious."""
    own = settings_for()
    if settings.market_folder == own.market_folder:
        return ""
    return f" in the simulated market of seed {settings.sim_seed}" if settings.simulated else " in the real market"
