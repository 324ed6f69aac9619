"""`openbell account`: list and add accounts, renew their tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from openbell.brokers.registry import all_brokers
from openbell.cli.app import fail, group, plain_errors, settings_for
from openbell.desk.desk import Desk
from openbell.market.clock import iso

if TYPE_CHECKING:
    from openbell.desk.orders.portfolio import Balance
    from openbell.trading.accounts import Account

T = TypeVar("T")
_HEADINGS = ("account", "broker", "equity", "cash", "day's P&L", "positions", "protection", "created")
accounts = group("account", "List, add and protect trading accounts.")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
Name = Annotated[str, typer.Argument(help="Letters, digits, dots, dashes and underscores.")]


@accounts.command("list")
def listing() -> None:
    """List the accounts with their balances in USD. OPENBELL_ACCOUNT chooses one.

    The day's P&L is the change of the equity since 00:00 UTC.
    """
    found = _run(_balances, writes=False)
    if found:
        rows = [_HEADINGS, *(_row(account, balance) for account, balance in found)]
        typer.echo("\n".join(_aligned(rows, right=(2, 3, 4, 5))))
    for account, balance in found:
        if balance.note:
            typer.echo(f"openbell: {account.name}: {balance.note}", err=True)
    if not found:
        typer.echo("no account yet: the first order creates the default account")


async def _balances(desk: Desk) -> list[tuple[Account, Balance]]:
    """Returns every account with its balance."""
    trading = desk.trading
    return [(each, await trading.portfolio.balance_of(each)) for each in await trading.accounts.listing()]


def _row(account: Account, balance: Balance) -> tuple[str, ...]:
    amounts = (balance.total, balance.cash, balance.day_profit)
    money = ("not known" if each is None else f"{each:,.2f}" for each in amounts)
    protection = "token" if account.token else "no token"
    created = iso(int(account.created_at))
    return (account.name, account.broker, *money, f"{balance.positions}", protection, created)


@accounts.command("add")
def add(
    name: Name,
    cash: Annotated[str, typer.Option("--cash", help="Initial cash in USD (default: OPENBELL_PAPER_CASH).")] = "",
    token: Annotated[
        bool, typer.Option("--token", help="Protect the account with a token, which is printed once.")
    ] = False,
) -> None:
    """Add a paper account."""
    if name in {kind.name for kind in all_brokers().values() if kind.make is not None}:
        fail(f"{name} is the name of a default account, which the first order creates", 2)
    _check(name)
    secret = _run(lambda desk: desk.trading.accounts.add(name, "paper", _cash(cash, desk), with_token=token))
    typer.echo(f"added the account {name}; use it with OPENBELL_ACCOUNT={name}")
    _print_token(secret)


@accounts.command("token")
def token(
    name: Name, remove: Annotated[bool, typer.Option("--remove", help="Remove the token instead.")] = False
) -> None:
    """Give an account a new token; the old token is invalid at once."""
    _check(name)
    secret = _run(lambda desk: desk.trading.accounts.renew_token(name, remove=remove))
    typer.echo(f"{name} has no token now" if remove else f"{name} has a new token")
    _print_token(secret)


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        fail("a name has 1 to 60 letters, digits, dots, dashes and underscores, and starts with a letter or digit", 2)


def _print_token(secret: str | None) -> None:
    if secret:
        typer.echo(f"its token, printed only once (set it as OPENBELL_ACCOUNT_TOKEN):\n{secret}")


def _cash(text: str, desk: Desk) -> Decimal:
    if not text:
        return desk.settings.paper_cash
    try:
        cash = Decimal(text.replace(",", ""))
    except InvalidOperation:
        cash = Decimal(-1)
    if not cash.is_finite() or not 0 <= cash < Decimal("1e15"):
        fail("--cash must be an amount in USD", 2)
    return cash


def _run(work: Callable[[Desk], Awaitable[T]], *, writes: bool = True) -> T:
    settings = settings_for()
    if writes and settings.read_only:
        fail("this desk is read-only (OPENBELL_READ_ONLY)")
    if writes and settings.other_clock:
        fail("accounts belong to the present: unset OPENBELL_AS_OF (a scenario has one account of its own)")

    async def run() -> T:
        async with Desk(settings) as desk:
            return await work(desk)

    with plain_errors():
        return asyncio.run(run())


def _aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Returns rows as lines whose columns are as wide as their longest text; those in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if number in right else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
