"""Accounts of principals: which account a call is about, and whether its caller may use it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from openbell.desk.orders.venue import Venue
from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import InvalidParameter, SettingsError
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import Account, AccountNotFound, Unauthorized, hashed, new_token, slug

_CASH_SECONDS = 5.0
"""How long the cash in a broker's account is used after it was read."""


@dataclass(frozen=True, slots=True)
class OperatorAccount:
    """The account that the settings name for the local operator."""

    name: str
    token: str = ""
    implicit: bool = True
    """Whether it is created by its first order; otherwise `openbell account add` must have created it."""


class AccountService:
    """Finds the account of a principal. The operator's is named by the settings; each other principal has one of its own,
    created by its first order.
    """

    def __init__(
        self, records: Records, venue: Venue, operator: OperatorAccount, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`now` is the monotonic time: how old a cash that was read is."""
        self._now = now
        self._records = records
        self._venue = venue
        self._operator = operator
        self._cash: Decimal | None = None
        """The starting cash of a new account, when it was read last."""
        self._cash_at = 0.0

    def name_of(self, principal: str) -> str:
        """Returns the name of a principal's account."""
        if principal == OPERATOR:
            return self._operator.name
        if self._venue.remote:
            raise Unauthorized(
                f"the account at {self._venue.name} belongs to the operator of this desk", account=self._operator.name
            )
        return f"{self._operator.name}.{slug(principal)}"

    async def admit(self, principal: str) -> Account:
        """Returns a principal's account, as it will be created if it is new. Raises `AccountNotFound` or `Unauthorized`."""
        name = self.name_of(principal)
        found = await self._records.read(queries.account, name)
        if found is None and self._implicit(principal):
            await self._read_cash()
        return self._admitted(found, principal)

    async def _read_cash(self) -> None:
        """Read the starting cash, unless it was just read: it changes at a broker until the account is created."""
        if self._cash is None or self._now() - self._cash_at >= _CASH_SECONDS:
            now = self._now()
            self._cash = await self._venue.opening_cash()
            self._cash_at = now

    def open(self, view: View, principal: str) -> Account:
        """Returns a principal's account; call `admit` first. Raises `AccountNotFound` or `Unauthorized`."""
        return self._admitted(queries.account(view, self.name_of(principal)), principal)

    def _admitted(self, found: Account | None, principal: str) -> Account:
        name = self.name_of(principal)
        if found is None:
            if not self._implicit(principal):
                raise AccountNotFound(
                    f"there is no account {name}; make it with: openbell account add {name}", account=name
                )
            assert self._cash is not None
            found = Account(name, self._venue.name, principal, self._cash, None, 0.0)
        if found.broker != self._venue.name:
            raise SettingsError(
                f"the account {found.name} belongs to the broker {found.broker}, and OPENBELL_BROKER is "
                f"{self._venue.name}"
            )
        found.admit(principal, self._operator.token)
        return found

    def ensure(self, journal: Journal, principal: str) -> Account:
        """Returns a principal's account, recorded if it is new."""
        account = self.open(journal.view, principal)
        if not account.created_at:
            account = replace(account, created_at=journal.at)
            journal.put("account", account, new=True)
        return account

    async def listing(self) -> list[Account]:
        """Returns every account."""
        return await self._records.read(queries.all_accounts)

    async def add(self, name: str, broker: str, cash: Decimal, *, with_token: bool) -> str | None:
        """Create an account of the operator; returns its token, if it has one. The token is not stored in clear."""
        token = new_token() if with_token else None

        def work(journal: Journal) -> None:
            if queries.account(journal.view, name) is not None:
                raise InvalidParameter(f"there is an account {name} already")
            held = None if token is None else hashed(token)
            journal.put("account", Account(name, broker, OPERATOR, cash, held, journal.at), new=True)

        await self._records.write(work)
        return token

    async def renew_token(self, name: str, *, remove: bool = False) -> str | None:
        """Replace or remove an account's token; the old one is invalid at once. Returns the new one."""
        token = None if remove else new_token()

        def work(journal: Journal) -> None:
            found = queries.account(journal.view, name)
            if found is None:
                raise AccountNotFound(f"there is no account {name}", account=name)
            journal.put("account", replace(found, token=None if token is None else hashed(token)))

        await self._records.write(work)
        return token

    def _implicit(self, principal: str) -> bool:
        return principal != OPERATOR or self._operator.implicit
