"""`openbell backup DIR` and `openbell restore DIR`: copy the home while the desk runs, and put a copy in place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.cli.terminal import progress
from openbell.desk.settings import home_of
from openbell.market.clock import iso
from openbell.market.errors import StoreError
from openbell.market.plural import counted

if TYPE_CHECKING:
    from openbell.desk.operations.backup.restoring import Restored
    from openbell.desk.settings import Settings

_LONG = 10_000_000
"""A progress bar is shown for at least this many bytes."""


@app.command("backup")
def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The new folder to write, best on another disk.")],
) -> None:
    """Copy the home into a new folder, also while the desk runs and trades.

    Holds records with the heads of their ledgers, bars with their coverage, the watchlist, openbell.toml with the
    passwords in it, and users with hashes of their tokens. Does not hold scenarios, webhooks, pictures, logs and
    environment variables; nor what is in PostgreSQL and InfluxDB: the commands for those are printed.

    The folder gets its name when it is complete. Exits with 1 if it could not be written.

    \b
    Example:
      openbell backup /mnt/backups/openbell-monday
    """  # noqa: D301 (click reads the backspace)
    settings = settings_for()
    with plain_errors():
        from openbell.desk.operations.backup import contents, making

        with progress("copying", making.size_of(settings.home), "bytes", least=_LONG) as advance:
            made = making.make(settings.home, folder.expanduser().absolute(), advance)
    typer.echo(f"copied {counted(len(made.files), 'file')}, {made.size / 1e6:.1f} MB, into {folder}")
    for included in contents.INCLUDED:
        typer.echo(f"  with     {included}")
    typer.echo(f"  without  {', '.join(contents.EXCLUDED)}")
    for market, head in made.heads.items():
        typer.echo(f"head  {head}" + ("" if market == "." else f"  ({market})"))
    for line in _elsewhere(settings):
        typer.echo(line)


@app.command("restore")
def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that openbell backup has written.")],
    replaces: Annotated[
        bool, typer.Option("--replace", help="Replace a home that is not empty; the old one is kept beside it.")
    ] = False,
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Make the users and tokens of the backup valid, as they were then.")
    ] = False,
) -> None:
    """Put a backup in place of the home, after checking its files, ledgers and bars.

    Stop every Openbell process of this home first. If the old home knows a later end of a ledger, nothing is written to
    the restored one until you accept it with: openbell verify --adopt

    Users and tokens of the home that is replaced stay valid, and those of the backup are not used: a token that was
    removed since stays removed. In a new home none is valid. --keep-tokens uses those of the backup instead.

    In a home that is a mount point, the old files are kept in its folder before-restore-…; if this command is killed
    meanwhile, other commands refuse the home until you repeat it.

    Exits with 1, and changes nothing, if the backup is damaged or unfinished, or the home is in use or not empty.

    \b
    Example:
      openbell restore /mnt/backups/openbell-monday --replace
    """  # noqa: D301 (click reads the backspace)
    with plain_errors():
        from openbell.desk.operations.backup import contents, restoring

        with restoring.alone(home_of(os.environ)):
            _take_back()
            settings = settings_for()
            if settings.read_only:
                fail("this desk is read-only (OPENBELL_READ_ONLY)")
            source = folder.expanduser().absolute()
            with progress("restoring", contents.read_manifest(source).size, "bytes", least=_LONG) as advance:
                done = restoring.restore(settings, source, replaces=replaces, keep_tokens=keep_tokens, advance=advance)
    for line in _report(settings, done):
        typer.echo(line)


def _take_back() -> None:
    """Put a home back as it was if a restore of it was killed: its settings are among what was moved."""
    from openbell.desk.operations.backup.restoring import take_back

    home = home_of(os.environ)
    try:
        if take_back(home):
            typer.echo(f"note  a restore of {home} was interrupted: what it had moved is back in its place")
    except OSError as error:
        raise StoreError(f"cannot put {home} back as it was: {error.strerror}: {error.filename}") from error


def _report(settings: Settings, done: Restored) -> Iterator[str]:
    made = done.manifest
    yield f"restored {settings.home} as it was at {iso(int(made.made_at))}: {counted(len(made.files), 'file')}"
    for market, head in made.heads.items():
        yield f"ok    ledger unchanged, head {head}" + ("" if market == "." else f"  ({market})")
    yield f"ok    bars of {done.bars} series are those that were stored"
    for loss in done.losses:
        yield f"note  when it was copied, it {loss.described()}"
    if done.halted is not None:
        typer.echo(f"note  the home that was replaced is halted ({done.halted}), and stays so: openbell resume ends it")
    for market, (copied, known) in done.later.items():
        where = "" if market == "." else f" in {market}"
        yield (
            f"note  the ledger{where} ends at entry {copied}, and the home that was replaced had {known}: nothing is "
            "written to it until you accept that with openbell verify --adopt"
        )
    yield from _about_access(done)
    if done.aside:
        yield f"note  the old home is kept as {done.aside}"


def _about_access(done: Restored) -> Iterator[str]:
    """Which users and tokens of the backup are valid again, or are not."""
    found, differs = done.access, done.access.differs
    if found.unreadable is not None:
        yield f"note  the users and tokens of the home that was replaced could not be kept: {found.unreadable}"
    if not differs:
        return
    if not found.from_backup:
        names = [f"token {name}" for name in sorted(differs.tokens.values())]
        names += [f"user {name}" for name in sorted(differs.users.values())]
        names += [f"access that {name} gave to a client" for name in sorted(set(differs.consents.values()))]
        yield f"note  not valid, because the backup alone has it: {', '.join(names)}"
        yield "note  add tokens with openbell token add and users with openbell passphrase, or restore with --keep-tokens"
        return
    for name in sorted(differs.tokens.values()):
        yield f"note  valid again: token {name}; openbell token remove {name} removes it"
    for name in sorted(differs.users.values()):
        yield f"note  valid again: user {name}, with the passphrase of then; openbell passphrase {name} --remove removes it"
    for name in sorted(set(differs.consents.values())):
        yield f"note  valid again: access that {name} gave to a client; openbell passphrase {name} revokes it"


def _elsewhere(settings: Settings) -> Iterator[str]:
    """What this backup cannot hold, and how to copy it."""
    if settings.database_url:
        yield "note  the records in PostgreSQL are not in it. Copy them after the home, with:"
        yield "      pg_dump --format=custom --schema='openbell*' --file=records.dump \"$OPENBELL_DATABASE_URL\""
    for number, line in enumerate(settings.store_backend.backup_notes()):
        yield f"      {line}" if number else f"note  {line}"
