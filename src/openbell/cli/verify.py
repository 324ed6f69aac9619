"""`openbell verify`: whether the ledger is as it was written."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, said_plainly, settings_for
from openbell.desk.desk import Desk
from openbell.market.errors import StoreError
from openbell.trading.ledger import Fault, Head

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.stores.records.view import View

_MOST = 20
_HEAD = re.compile(r"(\d{1,15}):([0-9a-f]{64})")


@app.command("verify")
def verify(
    head: Annotated[
        str | None,
        typer.Option("--head", metavar="NUMBER:HASH", help="A head that you noted: is it still there?"),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take the ledger as it stands, whatever was found, and note its head anew.")
    ] = False,
) -> None:
    """Check the ledger: its hash chain, the head that is noted outside the database, and what it tells of against it.

    Leaves with 1 if an entry was edited, removed, moved or cut off. Note the head that it prints somewhere else: with --head
    it also finds what somebody with access to this whole machine has rewritten.
    """
    noted = _read(head)
    settings = settings_for()
    if adopt and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    with said_plainly():
        newest, found = asyncio.run(_verify(settings, noted, adopt))
    for fault in found[:_MOST]:
        typer.echo(f"bad   {fault.reason}")
    if len(found) > _MOST:
        typer.echo(f"bad   … and {len(found) - _MOST} more")
    if adopt:
        typer.echo(f"note  the ledger was taken as it stands, with {newest.seq} entries")
    if found:
        raise typer.Exit(1)
    typer.echo(f"ok    {newest.seq} entries, every one as it was written")
    typer.echo(f"head  {newest.seq}:{newest.hash}")


def _read(text: str | None) -> Head | None:
    if text is None:
        return None
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        fail("--head must be as printed: NUMBER:HASH", 2)
    return Head(int(match[1]), match[2])


async def _verify(settings: Settings, noted: Head | None, adopt: bool) -> tuple[Head, list[Fault]]:
    from openbell.stores.records.journal import head_of
    from openbell.stores.records.verify import faults

    desk = Desk(settings)
    try:
        records = desk.trading.records
        damage: list[Fault] = []
        outside: Head | None = None
        try:
            outside = await asyncio.to_thread(records.head.read)
        except StoreError as error:
            damage.append(Fault(0, error.message))

        def work(view: View) -> tuple[Head, list[Fault]]:
            connection = view.connection
            newest = head_of(connection)
            heads = tuple(each for each in (outside, noted) if each is not None)
            found = list(faults(connection, heads))
            if outside is None and newest.seq and not damage:
                found.append(Fault(0, f"no head was noted outside the database ({records.head.path} is missing)"))
            return newest, found

        newest, found = await records.read(work, whatever_it_is=True)
        if adopt:
            await records.adopt()
        return newest, [*damage, *found]
    finally:
        await desk.close()
