"""`openbell consent`: what users have allowed MCP clients over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openbell.cli.app import fail, group
from openbell.cli.passphrase import in_access_store
from openbell.market.foreign_text import one_visible_line

if TYPE_CHECKING:
    from openbell.stores.access.grants import ListedConsent
    from openbell.stores.access.store import AccessStore

consents = group("consent", "List and revoke what users have allowed MCP clients over HTTP.")
_WIDEST = 60
_SHOWN = 12
"""Characters of an id that are shown, and enough to name a consent."""


@consents.command("list")
def listing() -> None:
    """List the consents that are valid: id, user, client, scopes, server, since when, and until when without a refresh."""
    from openbell.market.clock import iso

    found = _consents(writes=False)
    for each in found:
        grant = each.grant
        client = (
            f"{one_visible_line(each.client_name, _WIDEST)} ({grant.client_id})"
            if each.client_name
            else grant.client_id
        )
        times = f"since {iso(int(grant.created_at))}, until {iso(int(each.expires_at))}"
        scopes = ",".join(sorted(grant.scopes))
        typer.echo(f"{grant.id[:_SHOWN]}  {grant.subject:20} {scopes:16}  {client}  {grant.resource}  {times}")
    if not found:
        typer.echo("no consents: a client over HTTP asks for one when it connects (docs/oauth.md)")


@consents.command("revoke")
def revoke(
    consent: Annotated[
        str, typer.Argument(metavar="ID", help="The id, or its beginning, as openbell consent list shows it.")
    ],
) -> None:
    """Revoke a consent: all tokens of it are invalid within a second. The client must ask again."""
    found = [each for each in _consents(writes=True) if consent and each.grant.id.startswith(consent)]
    if len(found) != 1:
        why = "there is no consent" if not found else "there is more than one consent"
        fail(f"{why} {consent}; openbell consent list shows all consents")
    grant = found[0].grant

    async def work(store: AccessStore) -> None:
        from openbell.market.clock import SystemClock
        from openbell.stores.access import grants

        await store.write(grants.revoke, grant.id, SystemClock().epoch())

    in_access_store(work, writes=True)
    typer.echo(
        f"revoked what {grant.subject} allowed {one_visible_line(found[0].client_name, _WIDEST) or grant.client_id}"
    )


def _consents(*, writes: bool) -> list[ListedConsent]:
    async def work(store: AccessStore) -> list[ListedConsent]:
        from openbell.market.clock import SystemClock
        from openbell.stores.access import grants

        if not await store.database.exists():
            return []
        return await store.read(grants.listed, SystemClock().epoch())

    return in_access_store(work, writes=writes)
