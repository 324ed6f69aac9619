"""`openbell passphrase`: who can sign in on the consent page; and what `openbell token` and `consent` share with it."""

from __future__ import annotations

import asyncio
import getpass
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from openbell.cli.app import app, fail, plain_errors, settings_for
from openbell.desk.settings.principals import LONGEST_PASSPHRASE, OPERATOR, SHORTEST_PASSPHRASE, SUBJECT
from openbell.protocol.session import Scope

if TYPE_CHECKING:
    from openbell.stores.access.store import AccessStore

T = TypeVar("T")
SCOPES = ", ".join(Scope)
"""The names of all scopes, for help texts."""


def check_name(name: str) -> None:
    """Print an error and exit if a name is not one of a user or a token."""
    if not SUBJECT.fullmatch(name):
        fail("a name has 1 to 64 characters: a to z, digits, dots, dashes and underscores", 2)


def read_scopes(text: str) -> frozenset[str]:
    """Returns scopes that are separated by commas. Prints an error and exits if one does not exist."""
    found = frozenset(text.replace(",", " ").split())
    if not found or not found <= set(Scope):
        fail(f"--scopes must be one or more of {SCOPES}, separated by commas", 2)
    return found


def in_access_store(work: Callable[[AccessStore], Awaitable[T]], *, writes: bool) -> T:
    """Call a function with the store of users and tokens, and return its result."""
    settings = settings_for()
    if writes and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")

    async def run() -> T:
        from openbell.desk.settings.access import make_access

        store = make_access(settings)
        try:
            return await work(store)
        finally:
            await store.close()

    with plain_errors():
        return asyncio.run(run())


@app.command("passphrase")
def passphrase(
    name: Annotated[str, typer.Argument(help="The user: a to z, digits, dots, dashes and underscores.")] = OPERATOR,
    scopes: Annotated[
        str,
        typer.Option(
            "--scopes",
            metavar="LIST",
            help=f"What the user can grant: {SCOPES}. Default: unchanged; new users: all (local) or read.",
        ),
    ] = "",
    remove: Annotated[bool, typer.Option("--remove", help="Remove the user instead.")] = False,
) -> None:
    """Set the passphrase with which a user signs in to give MCP clients access over HTTP.

    Asks for it twice at a terminal, or reads one line of standard input. The access that the user gave before is revoked.
    """
    check_name(name)
    wanted = read_scopes(scopes) if scopes else None
    if remove:
        _remove(name)
        return
    text = _read()

    async def work(store: AccessStore) -> frozenset[str]:
        from openbell.gateway.oauth.passphrases import hashed
        from openbell.market.clock import SystemClock
        from openbell.stores.access import users
        from openbell.stores.access.users import User

        known = await store.read(users.find, name)
        default = _default_scopes(name) if known is None else known.scopes
        user = User(name, hashed(text), default if wanted is None else wanted)
        await store.write(users.put, user, SystemClock().epoch())
        return user.scopes

    granted = in_access_store(work, writes=True)
    typer.echo(f"{name} can sign in with the new passphrase and grant {', '.join(sorted(granted))}")


def _default_scopes(name: str) -> frozenset[str]:
    from openbell.protocol.session import Scope

    return frozenset(Scope) if name == OPERATOR else frozenset({Scope.READ})


def _remove(name: str) -> None:
    async def work(store: AccessStore) -> bool:
        from openbell.market.clock import SystemClock
        from openbell.stores.access import users

        return await store.write(users.remove, name, SystemClock().epoch())

    if not in_access_store(work, writes=True):
        fail(f"there is no user {name}")
    typer.echo(f"{name} is removed, and the access that it gave is revoked")


def _read() -> str:
    """Returns a new passphrase from the terminal or standard input. Prints an error and exits if it cannot be used."""
    try:
        if sys.stdin.isatty():
            text = getpass.getpass("Passphrase: ")
            if getpass.getpass("The same again: ") != text:
                fail("the two are not the same: nothing was changed")
        else:
            text = sys.stdin.readline().rstrip("\r\n")
    except (EOFError, UnicodeDecodeError):
        fail("no passphrase could be read: nothing was changed")
    if not SHORTEST_PASSPHRASE <= len(text) <= LONGEST_PASSPHRASE or not text.isprintable():
        lengths = f"{SHORTEST_PASSPHRASE} to {LONGEST_PASSPHRASE}"
        fail(f"a passphrase has {lengths} characters that can be printed: nothing was changed")
    return text
