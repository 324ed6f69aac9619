"""`openbell webhook`: send alerts and fills to other programs, and receive alerts of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.desk.desk import Desk
from openbell.desk.settings.principals import OPERATOR
from openbell.market.clock import iso

T = TypeVar("T")

webhook = group("webhook", "Send alerts and fills to a URL; receive alerts of TradingView and others.")


@webhook.command("add")
def add(
    url: Annotated[str, typer.Argument(metavar="[URL]", help="Where events are sent: https://HOST/PATH.")] = "",
    events: Annotated[
        str, typer.Option("--events", metavar="A,B", help="The events to send: alert, fill (default: both).")
    ] = "",
    symbols: Annotated[
        str, typer.Option("--symbols", metavar="A,B", help="The symbols to send events of (default: all).")
    ] = "",
    inbound: Annotated[
        str, typer.Option("--inbound", metavar="NAME", help="Receive instead: add an address for alerts of others.")
    ] = "",
) -> None:
    """Add a webhook and print its secret, once. Only what happens from now on is sent; `openbell up` sends it.

    \b
    Examples:
      openbell webhook add https://example.com/hook --events fill --symbols BTC/USD
      openbell webhook add --inbound tradingview
    """  # noqa: D301 (click reads the backspace)
    if bool(url) == bool(inbound):
        fail("give either a URL or --inbound NAME", 2)
    if inbound:
        if events or symbols:
            fail("--events and --symbols are for webhooks that are sent: leave them out with --inbound", 2)
        made, secret = _run(lambda desk: desk.webhooks.add_inbound(OPERATOR, inbound))
        typer.echo(f"added the webhook {made.id}; send POST requests to the gateway's address followed by")
        typer.echo(f"/webhooks/{made.id}")
    else:
        wanted = [each.strip() for each in events.split(",") if each.strip()]
        chosen = [each.strip() for each in symbols.split(",") if each.strip()]
        made, secret = _run(lambda desk: desk.webhooks.add(OPERATOR, url, wanted, chosen))
        typer.echo(f"added the webhook {made.id}")
    typer.echo(f"its secret, printed only once:\n{secret}")


@webhook.command("list")
def show() -> None:
    """List the webhooks, each with the number of deliveries that wait or were given up (dead)."""
    found = _run(lambda desk: desk.webhooks.list(OPERATOR), writes=False)
    for each in found:
        hook = each.webhook
        if hook.url:
            about = f"{','.join(hook.events)}  {','.join(sorted(hook.symbols)) or 'all symbols'}"
            typer.echo(
                f"{hook.id}  {hook.url}  {about}  {each.waiting} waiting, {each.dead} dead  {iso(hook.created_at)}"
            )
        else:
            typer.echo(f"{hook.id}  inbound: {hook.name}  {iso(hook.created_at)}")
    if not found:
        typer.echo("no webhooks; add one with openbell webhook add")


@webhook.command("remove")
def remove(webhook_id: Annotated[str, typer.Argument(metavar="ID", help="The webhook's id.")]) -> None:
    """Remove a webhook, with the deliveries that wait or were given up."""
    _run(lambda desk: desk.webhooks.remove(OPERATOR, webhook_id))
    typer.echo(f"{webhook_id} is removed")


@webhook.command("dead")
def dead(
    retry: Annotated[
        str, typer.Option("--retry", metavar="ID", help="Send this delivery again, or all of this webhook.")
    ] = "",
) -> None:
    """List the deliveries that were given up after a day of failures, with the reason of the last one."""
    if retry:
        count = _run(lambda desk: desk.webhooks.retry(OPERATOR, retry))
        typer.echo(f"{count} {'delivery is' if count == 1 else 'deliveries are'} sent again")
        return
    found = _run(lambda desk: desk.webhooks.dead(OPERATOR), writes=False)
    for each in found:
        typer.echo(f"{each.id}  {each.webhook_id}  {each.type}  queued {iso(each.queued)}  {each.reason}")
    if not found:
        typer.echo("no delivery was given up")


def _run(work: Callable[[Desk], Awaitable[T]], *, writes: bool = True) -> T:
    settings = settings_for()
    if writes and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    if settings.other_clock:
        fail("webhooks belong to the present: unset OPENBELL_AS_OF")

    async def run() -> T:
        async with Desk(settings) as desk:
            return await work(desk)

    with plain_errors():
        return asyncio.run(run())
