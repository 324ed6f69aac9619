"""`openbell token`: tokens for scripts that use the gateway."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import fail, group
from openbell.cli.passphrase import SCOPES, check_name, in_access_store, read_scopes
from openbell.desk.settings.principals import OPERATOR

if TYPE_CHECKING:
    from openbell.stores.access.static_tokens import StaticToken
    from openbell.stores.access.store import AccessStore

tokens = group("token", "List, add and remove tokens for scripts that use the gateway.")
Name = Annotated[str, typer.Argument(help="The token's name: a to z, digits, dots, dashes and underscores.")]
_SPAN = re.compile(r"([1-9]\d{0,5})([mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400}


@tokens.command("list")
def listing() -> None:
    """List the tokens: name, user, scopes, and when they expire. The tokens themselves are not stored."""

    async def work(store: AccessStore) -> list[StaticToken]:
        from openbell.stores.access import static_tokens

        if not await store.database.exists():
            return []
        return await store.read(static_tokens.listed)

    from openbell.market.clock import SystemClock, iso

    found, now = in_access_store(work, writes=False), SystemClock().epoch()
    for token in found:
        end = "does not expire" if token.expires_at is None else f"expires {iso(round(token.expires_at))}"
        if token.expires_at is not None and token.expires_at <= now:
            end = f"expired {iso(round(token.expires_at))}"
        typer.echo(f"{token.name:20} {token.subject:20} {','.join(sorted(token.scopes)):16}  {end}")
    if not found:
        typer.echo("no tokens: add one with openbell token add NAME --scopes read")


@tokens.command("add")
def add(
    name: Name,
    scopes: Annotated[
        str,
        typer.Option("--scopes", metavar="LIST", help=f"What it allows: {SCOPES} (trade includes write)."),
    ],
    expires: Annotated[
        str, typer.Option("--expires", metavar="SPAN", help="How long it is valid: 90d, 12h or 30m (default: always).")
    ] = "",
    user: Annotated[str, typer.Option("--user", help="The user whose accounts, orders and alerts it uses.")] = OPERATOR,
) -> None:
    """Add a token, which is printed only once."""
    check_name(name)
    check_name(user)
    allowed, seconds = read_scopes(scopes), _seconds(expires)

    async def work(store: AccessStore) -> str:
        from openbell.gateway.oauth.secret_texts import STATIC, digest, new_secret
        from openbell.market.clock import SystemClock
        from openbell.stores.access import static_tokens
        from openbell.stores.access.static_tokens import StaticToken

        text, now = new_secret(STATIC), SystemClock().epoch()
        until = None if seconds is None else now + seconds
        token = StaticToken(name, user, allowed, digest(text), now, until)
        await store.write(static_tokens.add, token)
        return text

    secret = in_access_store(work, writes=True)
    typer.echo(f"added the token {name}, printed only once; send it as Authorization: Bearer TOKEN\n{secret}")


@tokens.command("remove")
def remove(name: Name) -> None:
    """Remove a token; it is invalid at once."""
    check_name(name)

    async def work(store: AccessStore) -> bool:
        from openbell.stores.access import static_tokens

        return await store.write(static_tokens.remove, name)

    if not in_access_store(work, writes=True):
        fail(f"there is no token {name}; openbell token list shows all tokens")
    typer.echo(f"{name} is removed")


def _seconds(span: str) -> float | None:
    """Returns the seconds of a span; None if it is empty. Prints an error and exits if it is not one."""
    if not span:
        return None
    found = _SPAN.fullmatch(span)
    if found is None:
        fail("--expires must be a number of minutes, hours or days, such as 30m, 12h or 90d", 2)
    return float(int(found[1]) * _SECONDS[found[2]])
