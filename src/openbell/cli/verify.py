"""`openbell verify`: whether the ledger is as it was written, and makes sense."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, said_plainly, settings_for
from openbell.desk.desk import Desk
from openbell.market.errors import OpenbellError, StoreError
from openbell.trading.ledger import GENESIS, Fault, Head, check

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.stores.records.records import Records
    from openbell.stores.records.verify import BarsFound
    from openbell.stores.records.view import View

_MOST = 20
_WIDEST = 500
_LONG = 20_000
"""Entries from which on progress is shown."""
_TRIES = 50
"""How often the ledger and its head are looked at together while others write."""
_HEAD = re.compile(r"(\d{1,15}):([0-9a-f]{64})")


@dataclass(slots=True)
class Findings:
    """What was found."""

    newest: Head = Head(0, GENESIS)
    count: int = 0
    """Faults, of which the first are kept."""
    faults: list[Fault] = field(default_factory=list)
    bars: BarsFound | None = None
    unread: str = ""
    """Why the bars could not be read."""

    def add(self, found: Iterable[Fault]) -> None:
        """Count some faults."""
        for fault in found:
            self.count += 1
            if len(self.faults) < _MOST:
                self.faults.append(fault)


@app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="NUMBER:HASH", help="A head that you noted: is it still there?"),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take the ledger as it stands, whatever was found, and note its head anew.")
    ] = False,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Check this scenario's ledger, not the present's.")
    ] = None,
) -> None:
    """Check the ledger: its hash chain, the head that is noted outside the database, and what it tells of against it.

    Leaves with 1 if an entry was edited, removed, moved, cut off or added by somebody else, or does not follow from those
    before it: a fill without its order, an order without its verdict, a price that the bar did not have. Note the head that
    it prints somewhere else: with --head it also finds what somebody with access to this whole machine has rewritten.
    """
    noted = _read(head)
    settings = settings_for()
    if adopt and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    with said_plainly():
        found = asyncio.run(_verify(settings, noted, adopt, scenario))
    for fault in found.faults:
        typer.echo(f"bad   {_plain(fault.reason)}")
    if found.count > len(found.faults):
        typer.echo(f"bad   … and {found.count - len(found.faults)} more")
    if adopt:
        typer.echo(f"note  the ledger was taken as it stands, with {found.newest.seq} entries")
    if not found.count:
        typer.echo(f"ok    {found.newest.seq} entries, every one as it was written")
    for line in _about_bars(found):
        typer.echo(line)
    if found.count:
        raise typer.Exit(1)
    typer.echo(f"head  {found.newest.seq}:{found.newest.hash}")


def _about_bars(found: Findings) -> Iterator[str]:
    """Whether the bars that paper fills rest on are still the same: vendors correct theirs, so a change is no fault."""
    if found.unread:
        yield f"note  the fills were not compared with their bars: {found.unread}"
    bars = found.bars
    if bars is None or not bars.fills:
        return
    stored = f"{bars.stored} of {bars.fills} fills' bars are stored"
    if not bars.changed:
        yield f"note  {stored}" + (", all as they were" if bars.stored else "")
        return
    named = _plain(", ".join(bars.changed[:3]) + (", …" if len(bars.changed) > 3 else ""))
    yield f"note  {stored}; {len(bars.changed)} have other numbers now: corrected by their vendor, or edited ({named})"


def _plain(text: str) -> str:
    """One line: whoever writes an entry must not write what this prints."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text[:_WIDEST])


def _read(text: str | None) -> Head | None:
    if text is None:
        return None
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        fail("--head must be as printed: NUMBER:HASH", 2)
    return Head(int(match[1]), match[2])


async def _verify(settings: Settings, noted: Head | None, adopt: bool, scenario: str | None) -> Findings:
    from openbell.desk.trading.record_locations import Scenarios, make_records

    # Whatever clock the settings name: all of the ledger is checked.
    desk = Desk(dataclasses.replace(settings, as_of="", replay_speed=0.0, scenario=""))
    if scenario is not None:
        await Scenarios(desk.settings, desk.clock).check(scenario)
    records = make_records(desk.settings, desk.clock, scenario)
    try:
        found = Findings()
        ends = records.head.ends
        try:
            ends()
        except StoreError as error:
            found.add([Fault(0, error.message)])
            ends = tuple  # none
        heads = () if noted is None else (noted,)
        if await records.database.exists():
            await _look(records, heads, ends, found)
            await _look_at_bars(desk, records, found)
        else:  # opening them would make them
            found.add(check((), heads, ends()))
        if adopt:
            await records.adopt()
        return found
    finally:
        await records.close()
        await desk.close()


async def _look(
    records: Records, heads: tuple[Head, ...], read_ends: Callable[[], tuple[Head, ...]], found: Findings
) -> None:
    """The ledger and its tables, in one view of the database."""
    from openbell.stores.records import checkpoints
    from openbell.stores.records.verify import Snapshot, faults, snapshot

    def work(view: View) -> Snapshot | None:
        connection = view.connection
        now = snapshot(connection, read_ends)
        if now.moved_on and now != before and number < _TRIES:
            return now
        found.newest = now.newest
        with _progress(now.newest.seq) as seen:
            found.add(faults(connection, heads, now.ends, one_home=records.one_home, seen=seen))
            found.add(Fault(seq, reason) for seq, reason in checkpoints.wrong(view))
        if not now.ends and now.newest.seq and read_ends is not tuple:
            found.add([Fault(0, f"no head was noted outside the database ({records.head.path} is missing)")])
        return None

    before: Snapshot | None = None
    number = 1
    while (before := await records.read(work, check_head=False)) is not None:
        number += 1


async def _look_at_bars(desk: Desk, records: Records, found: Findings) -> None:
    """The bars that paper fills rest on, as far as they are stored."""
    from openbell.stores.records.verify import BarsFound, Cursor, compare, paper_fills

    bars = BarsFound()
    after: Cursor | None = None
    try:
        while True:
            page, after = await records.read(lambda view: paper_fills(view.connection, after), check_head=False)  # noqa: B023
            if after is None:
                break
            if not desk.settings.bar_folder.exists() and not desk.settings.influx_url:
                bars.fills += len(page)  # opening the store would make it
                continue
            await desk.threads.run(compare, page, desk.store.read, bars)
    except OpenbellError as error:
        found.unread = error.message
    found.bars = bars
    found.add(bars.faults)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error while there is much to read, if somebody is there to see it."""
    if total < _LONG or not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("entries", total=total)
        yield lambda count: progress.update(task, completed=count)
