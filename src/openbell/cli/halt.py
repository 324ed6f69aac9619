"""`openbell halt` and `openbell resume`: the kill switch."""

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
def halt(reason: Annotated[str, typer.Option("--reason", "-r", help="The reason; part of each refusal.")] = "") -> None:
    """Refuse orders that open positions, at once, in every server on this home. Orders that only reduce are accepted.

    Resting orders that could open a position are cancelled in every market of the home. In scenarios, new opening orders
    are refused and resting orders stay. `openbell resume` ends the halt.
    """
    # A shell may pass bytes that are not text: halt all the same.
    reason = reason.encode(errors="replace").decode()
    settings = _present_settings()
    own = Desk(settings)
    began = round(own.clock.epoch(), 3)
    try:
        # The file first: it needs neither a database nor a broker.
        own.trading.halt_file.set(reason)
    except OSError as error:
        fail(f"cannot write to the home {settings.home}: {error.strerror}")
    typer.echo("halted: no position is opened on this home until openbell resume")

    async def work(desk: Desk) -> None:
        trading = desk.trading
        # Bars that have closed by now fill orders first; only the rest is cancelled.
        await trading.settle_all()
        await trading.halts.halt(reason)
        ended = 0
        for venue in trading.venues:
            if venue.remote:
                typer.echo(f"cancelling resting orders at {venue.name}: openbell halt does so also without --trade")
                if again := await trading.halts.cancel_again(venue):
                    typer.echo(f"{again} cancellation{'s' if again > 1 else ''} not confirmed so far: sent again")
            # An engine that runs elsewhere may have cancelled some of them as soon as the file was there.
            own_count = await trading.halts.enforce(venue)
            ended += max(own_count, await trading.halts.cancelled_since(venue, began))
        orders = "order that could open a position was" if ended == 1 else "orders that could open a position were"
        typer.echo(f"{ended} resting {orders} cancelled{_where(desk.settings)}")
        for name, count in (await trading.halts.resting_elsewhere(trading.venues)).items():
            orders = "1 order that could open a position rests" if count == 1 else f"{count} such orders rest"
            typer.echo(f"{orders} at {name}: cancel with OPENBELL_BROKER={name} openbell halt", err=True)

    _in_every_market(settings, work)


@app.command("resume")
def resume() -> None:
    """End `openbell halt`: allow orders that open positions again."""
    if settings_for().read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    settings = _present_settings()
    halted = False

    async def work(desk: Desk) -> None:
        nonlocal halted
        halted = await desk.trading.halts.resume() or halted
        # The file goes last, after the records of the settings' own market.
        halted = desk.trading.halt_file.lift() or halted

    _in_every_market(settings, work)
    typer.echo("resumed: positions may be opened again" if halted else "trading was not halted")


def _present_settings() -> Settings:
    """Returns the settings without clock, scenario and read-only: the kill switch always acts on the present."""
    settings = settings_for()
    feed = "none" if feed_of(settings.feed).origin is Origin.REPLAY else settings.feed
    return dataclasses.replace(settings, read_only=False, as_of="", replay_speed=0.0, scenario="", feed=feed)


def _in_every_market(settings: Settings, work: Callable[[Desk], Awaitable[None]]) -> None:
    """Run `work` in every market of the home, that of the settings first; failures are printed at the end."""
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

    async def run() -> None:
        await attempt(settings)
        try:
            others = (await markets(settings))[1:]
        except OpenbellError as error:
            others = []
            if not failures:
                failures.append(error.message)
        for each in others:
            await attempt(each)

    asyncio.run(run())
    if failures:
        fail("\n".join(failures))


def _where(settings: Settings) -> str:
    """Returns the name of a market that is not the one of the settings."""
    own = settings_for()
    if settings.market_folder == own.market_folder:
        return ""
    return f" in the simulated market of seed {settings.sim_seed}" if settings.simulated else " in the real market"
