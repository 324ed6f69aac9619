"""`openbell halt` and `openbell resume`: the kill switch."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.desk.desk import Desk
from openbell.desk.orders.halt_file import HALT_FILE, HaltFile
from openbell.desk.settings import home_of, load
from openbell.feeds.registry import feed_of
from openbell.market.clock import SystemClock, iso
from openbell.market.errors import OpenbellError, SettingsError
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.desk.trading_desk import TradingDesk


@app.command("halt")
def halt(reason: Annotated[str, typer.Option("--reason", "-r", help="The reason; part of each refusal.")] = "") -> None:
    """Refuse orders that open positions, at once, in every server on this home. Orders that only reduce are accepted.

    Resting orders that could open a position are cancelled in every market of the home. In scenarios, new opening orders
    are refused and resting orders stay. `openbell resume` ends the halt. A second halt keeps the reason of the first.

    It also works with OPENBELL_READ_ONLY, which stops everything else that writes; `openbell resume` is refused there.
    """
    # A shell may pass bytes that are not text: halt all the same.
    reason = reason.encode(errors="replace").decode()
    # The file first: it needs neither valid settings, nor a database, nor a broker.
    began = round(SystemClock().epoch(), 3)
    with plain_errors():
        home = home_of(os.environ)
    file = HaltFile(home / HALT_FILE)
    not_halted, since = "", began
    try:
        since = file.set(reason, began)
    except OSError as error:
        not_halted = f"this home is not halted: cannot write to {home}: {error.strerror}"
        _say(f"openbell: {not_halted}", err=True)
    else:
        _say_halted(file, since, began)
    settings = _present_settings(not_halted or "halted, but resting orders were not cancelled")
    recorded: set[Path] = set()

    async def work(desk: Desk) -> None:
        trading = desk.trading
        # Bars that had closed when trading was halted fill orders first; only the rest is cancelled.
        await trading.settle_all(await trading.halts.since(since))
        entry = await trading.halts.halt(reason)
        recorded.add(desk.settings.market_folder)
        if not not_halted:
            with suppress(OSError):  # openbell up notes it when the disk has room
                file.note_entry(trading.records.database.where, entry)
        ended = await _cancelled(trading, began)
        orders = "order that could open a position was" if ended == 1 else "orders that could open a position were"
        _say(f"{ended} resting {orders} cancelled{_where(desk.settings, settings)}")
        for name, count in (await trading.halts.resting_elsewhere(trading.venues)).items():
            orders = "1 order that could open a position rests" if count == 1 else f"{count} such orders rest"
            _say(f"{orders} at {name}: cancel with OPENBELL_BROKER={name} openbell halt", err=True)

    failures = _in_every_market(settings, work)
    lines = _failed(failures, recorded)
    if failures and settings.database_url and not not_halted:
        lines.append(_LATER)
    if not_halted:
        done = "the records are halted: no desk on them opens a position" if recorded else "nothing is halted"
        lines.append(f"{done}. Make room in {home}, or stop every process of this home, and run openbell halt again")
    _end(lines)


async def _cancelled(trading: TradingDesk, began: float) -> int:
    """Cancel the resting orders that could open a position; returns how many were cancelled since the halt began."""
    ended = 0
    for venue in trading.venues:
        if venue.remote:
            _say(f"cancelling resting orders at {venue.name}: openbell halt does so also without --trade")
            if again := await trading.halts.cancel_again(venue):
                _say(f"{again} cancellation{'s' if again > 1 else ''} not confirmed so far: sent again")
        # An engine that runs elsewhere may have cancelled some of them as soon as the file was there.
        own_count = await trading.halts.enforce(venue)
        ended += max(own_count, await trading.halts.cancelled_since(venue, began))
    return ended


def _end(lines: list[str]) -> None:
    """Exit with 1 if something was not done, or if what was done could not be written."""
    if _unwritten:
        lines.append(f"what the command did was not written to standard output: {_unwritten[0].strerror}")
        _unwritten.clear()
    if lines:
        fail("\n".join(lines))


_LATER = "openbell up records the halt when the records can be written; until then other machines may open positions"
_unwritten: list[OSError] = []
"""Why standard output could not be written."""


def _say(text: str, *, err: bool = False) -> None:
    """Print a line. Nothing stops a halt: output that cannot be written, to a full disk or a closed pipe, is left out."""
    try:
        typer.echo(text, err=err)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2 if err else 1)
        if not err and not isinstance(error, BrokenPipeError):
            _unwritten.append(error)


def _say_halted(file: HaltFile, since: float, began: float) -> None:
    """Print that this home is halted, and the reason of an earlier halt, which is kept."""
    _say("halted: no position is opened on this home until openbell resume")
    if since < began:
        _say(f"trading was halted already, since {iso(int(since))}: {file.read()}")
    if file.incomplete:
        _say(f"openbell: the reason was not stored in {file.path}: {file.incomplete}", err=True)


def _failed(failures: dict[Path, str], recorded: set[Path]) -> list[str]:
    """Returns what was done in each market that failed; `recorded` are the markets with the halt in their ledger."""
    done = {market: "was recorded" if market in recorded else "was not recorded" for market in failures}
    return [f"the halt {done[each]}, and resting orders may rest still: {why}" for each, why in failures.items()]


@app.command("resume")
def resume() -> None:
    """End `openbell halt`: allow orders that open positions again. Refused with OPENBELL_READ_ONLY."""
    if settings_for().read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    settings = _present_settings("nothing was resumed")
    file = HaltFile(settings.home / HALT_FILE)
    since, halted = file.since() or SystemClock().epoch(), file.since() is not None

    async def work(desk: Desk) -> None:
        nonlocal halted
        trading = desk.trading
        # A halt that could not reach the records has cancelled nothing yet: nothing may fill from bars of its time.
        if halted or await trading.halts.current() is not None:
            await trading.settle_all(await trading.halts.since(since))
            for venue in trading.venues:
                if not venue.remote:
                    await trading.halts.enforce(venue)
        halted = await trading.halts.resume() or halted

    failures = _in_every_market(settings, work)
    if settings.market_folder not in failures:  # the file goes last
        file.lift()
        typer.echo("resumed: positions may be opened again" if halted else "trading was not halted")
    if failures:
        fail("\n".join(failures.values()))


def _present_settings(otherwise: str) -> Settings:
    """Returns the settings without clock, scenario and read-only: the kill switch always acts on the present.

    Prints what was not done, and exits, if the settings are not valid.
    """
    try:
        settings = load(as_of="", scenario="", replay_speed=0.0)
    except SettingsError as error:
        fail(f"{otherwise}: {error.message}")
    feed = "none" if feed_of(settings.feed).origin is Origin.REPLAY else settings.feed
    return dataclasses.replace(settings, read_only=False, feed=feed)


def _in_every_market(settings: Settings, work: Callable[[Desk], Awaitable[None]]) -> dict[Path, str]:
    """Run `work` in every market of the home, that of the settings first; returns the failures by market."""
    from openbell.desk.settings.open_records import markets

    failures: dict[Path, str] = {}

    async def attempt(each: Settings) -> None:
        try:
            async with Desk(each) as desk:
                await work(desk)
        except OpenbellError as error:
            failures[each.market_folder] = f"{error.message}{_where(each, settings)}"
        except OSError as error:
            failures[each.market_folder] = f"cannot write to the home {each.home}: {error.strerror}"

    async def run() -> None:
        await attempt(settings)
        try:
            others = (await markets(settings))[1:]
        except OpenbellError as error:
            others = []
            failures.setdefault(settings.market_folder, error.message)
        for each in others:
            await attempt(each)

    asyncio.run(run())
    return failures


def _where(settings: Settings, own: Settings) -> str:
    """Returns the name of a market that is not the one of the settings."""
    if settings.market_folder == own.market_folder:
        return ""
    return f" in the simulated market of seed {settings.sim_seed}" if settings.simulated else " in the real market"
