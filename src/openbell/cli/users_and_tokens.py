"""What the commands `passphrase` and `token` share: names, scopes, and the store of users and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from openbell.cli.app import fail, plain_errors, settings_for
from openbell.desk.settings.principals import SUBJECT
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
