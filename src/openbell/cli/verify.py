"""`openbell verify`: check that the ledger is unchanged and consistent."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.cli.terminal import progress
from openbell.desk.desk import Desk
from openbell.market.errors import OpenbellError, StoreError
from openbell.market.foreign_text import one_visible_line
from openbell.market.plural import counted
from openbell.trading.ledger import GENESIS, Head, LedgerFault, check

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.stores.records.records import Records
    from openbell.stores.records.snapshot import View
    from openbell.stores.records.verify import BarsFound, Cursor
    from openbell.trading.fills import Fill

_MOST = 20
_WIDEST = 500
_LONG = 20_000
"""A progress bar is shown for at least this many entries."""
_TRIES = 50
"""How often ledger and head are read again because another process wrote in between."""
_HEAD = re.compile(r"(\d{1,15}):(\d{1,9}:[0-9a-f]{64})")


@dataclass(slots=True)
class Findings:
    """The faults found so far, and the end of the ledger."""

    newest: Head = Head(0, GENESIS)
    count: int = 0
    """The number of faults; `faults` has the first of them."""
    faults: list[LedgerFault] = field(default_factory=list)
    bars: BarsFound | None = None
    unread: str = ""
    """Why the bars could not be read."""
    adopted: bool = False

    def add(self, found: Iterable[LedgerFault]) -> None:
        """Add faults."""
        for fault in found:
            self.count += 1
            if len(self.faults) < _MOST:
                self.faults.append(fault)


@app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="NUMBER:HASH",
            help="Check that the ledger still has this head of an earlier run.",
        ),
    ] = None,
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            help="Accept the ledger as it is, with all faults, and write its head file again; with --head, only if the "
            "ledger has that head.",
        ),
    ] = False,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Check the ledger of this scenario.")
    ] = None,
) -> None:
    """Check the ledger: its hash chain, the head file outside the database, and the tables against its entries.

    Exits with 1 if an entry was edited, removed, moved, truncated or added, or contradicts earlier entries: a fill without
    its order, an order without its verdict, a price outside its bar. Keep the printed head on another machine: --head then
    also finds changes by someone who can write the database and the head file.
    """
    noted = _read(head)
    settings = settings_for()
    if adopt and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    with plain_errors():
        found = asyncio.run(_verify(settings, noted, adopt, scenario))
    for fault in found.faults:
        typer.echo(f"bad   {one_visible_line(fault.reason, _WIDEST)}")
    if found.count > len(found.faults):
        typer.echo(f"bad   … and {found.count - len(found.faults)} more")
    if found.adopted:
        typer.echo(f"note  the ledger was accepted as it is, with {counted(found.newest.seq, 'entry', 'entries')}")
    if not found.count:
        typer.echo(f"ok    {counted(found.newest.seq, 'entry', 'entries')}, all unchanged")
    for line in _bar_notes(found):
        typer.echo(line)
    if found.count:
        raise typer.Exit(1)
    typer.echo(f"head  {found.newest.seq}:{found.newest.hash}")


def _bar_notes(found: Findings) -> Iterator[str]:
    """Describe changes of the bars behind paper fills: a note and no fault, because vendors correct their bars."""
    if found.unread:
        yield f"note  the fills were not compared with their bars: {found.unread}"
    bars = found.bars
    if bars is None or not bars.fills:
        return
    stored = f"{bars.stored} of {bars.fills} fills' bars are stored"
    if not bars.changed:
        yield f"note  {stored}" + (", all unchanged" if bars.stored else "")
        return
    named = one_visible_line(", ".join(bars.changed[:3]) + (", …" if len(bars.changed) > 3 else ""), _WIDEST)
    yield f"note  {stored}; {len(bars.changed)} have changed since: corrected by their vendor, or edited ({named})"


def _read(text: str | None) -> Head | None:
    if text is None:
        return None
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        fail("--head must have the form NUMBER:1:HASH, as openbell verify prints it", 2)
    return Head(int(match[1]), match[2])


async def _verify(settings: Settings, noted: Head | None, adopt: bool, scenario: str | None) -> Findings:
    from openbell.desk.settings.open_records import Scenarios, make_records
    from openbell.stores.records.journal import LedgerBroken

    # The whole ledger is checked, whatever clock the settings have.
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
            found.add([LedgerFault(0, error.message)])
            ends = tuple  # none
        heads = () if noted is None else (noted,)
        if await records.database.exists():
            await _check_ledger(records, heads, ends, found, adopt=adopt)
            await _check_bars(desk, records, found)
        else:  # opening the records would create them
            found.add(check((), heads, ends()))
        if adopt:
            try:
                await records.adopt(noted)
                found.adopted = True
            except LedgerBroken as error:
                found.add([LedgerFault(0, error.message)])
        return found
    finally:
        await records.close()
        await desk.close()


async def _check_ledger(
    records: Records,
    heads: tuple[Head, ...],
    read_ends: Callable[[], tuple[Head, ...]],
    found: Findings,
    *,
    adopt: bool,
) -> None:
    """Check the ledger and the tables in one transaction.

    With `adopt`, entries of other machines and a missing head file on PostgreSQL are what the operator accepts, and no
    faults.
    """
    from openbell.stores.records import checkpoints
    from openbell.stores.records.verify import LedgerEnd, faults, snapshot

    def work(view: View) -> LedgerEnd | None:
        connection = view.connection
        now = snapshot(connection, read_ends)
        if now.is_behind and now != before and number < _TRIES:
            return now
        found.newest = now.newest
        known, ends = (heads, now.ends) if records.one_home or not adopt else ((*heads, *now.ends[:1]), ())
        with progress("checking", now.newest.seq, "entries", least=_LONG) as advance:
            found.add(faults(connection, known, ends, one_home=records.one_home, advance=advance))
            found.add(LedgerFault(seq, reason) for seq, reason in checkpoints.mismatches(view))
        if not now.ends and now.newest.seq and read_ends is not tuple and (records.one_home or not adopt):
            missing = f"there is no head outside the database ({records.head.path} is missing)"
            found.add([LedgerFault(0, f"{missing}: {records.head.verify} --adopt accepts the ledger as it is")])
        return None

    before: LedgerEnd | None = None
    number = 1
    while (before := await records.read(work, check_head=False)) is not None:
        number += 1


async def _check_bars(desk: Desk, records: Records, found: Findings) -> None:
    """Compare paper fills with the stored bars."""
    from openbell.stores.records.verify import BarsFound, compare, paper_fills

    def fills_after(view: View, cursor: Cursor | None) -> tuple[list[Fill], Cursor | None]:
        return paper_fills(view.connection, cursor)

    bars = BarsFound()
    after: Cursor | None = None
    try:
        while True:
            page, after = await records.read(fills_after, after, check_head=False)
            if after is None:
                break
            if not desk.settings.store_backend.has_bars:
                bars.fills += len(page)  # opening the store would create it
                continue
            await desk.threads.run(compare, page, desk.store.read, bars)
    except OpenbellError as error:
        found.unread = error.message
    found.bars = bars
    found.add(bars.faults)
