"""Which account a call is about, and whether its caller may use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal

from openbell.desk.principals import OPERATOR
from openbell.market.errors import InvalidParameter, SettingsError
from openbell.stores.records import orders as queries
from openbell.stores.records.journal import Journal
from openbell.stores.records.records import Records
from openbell.stores.records.view import View
from openbell.trading.accounts import Account, AccountNotFound, hashed, new_token


class AccountService:
    """The account that the settings name. The default one needs no making: it begins with its first order."""

    def __init__(
        self,
        records: Records,
        name: str,
        broker: str,
        cash: Callable[[], Awaitable[Decimal]],
        token: str,
        *,
        default: bool,
    ) -> None:
        """`cash` says what a new account begins with."""
        self._records = records
        self.name = name
        self._broker = broker
        self._opening_cash = cash
        self._cash: Decimal | None = None
        self._token = token
        self._default = default

    async def prepare(self) -> None:
        """Find out what the account begins with, if it has not begun yet; to be called before `open`."""
        if self._cash is None and self._default:
            known = await self._records.read(lambda view: queries.account(view, self.name))
            self._cash = known.cash if known else await self._opening_cash()

    async def admit(self, principal: str) -> None:
        """Raise `AccountNotFound` or `Unauthorized` before anything is done on the account."""
        await self.prepare()
        await self._records.read(lambda view: self.open(view, principal))

    def open(self, view: View, principal: str) -> Account:
        """The account, for a principal. Raises `AccountNotFound` or `Unauthorized`."""
        found = queries.account(view, self.name)
        if found is None:
            if not self._default:
                raise AccountNotFound(
                    f"there is no account {self.name}; make it with: openbell account add {self.name}",
                    account=self.name,
                )
            assert self._cash is not None
            found = Account(self.name, self._broker, OPERATOR, self._cash, None, 0.0)
        if found.broker != self._broker:
            raise SettingsError(
                f"the account {found.name} belongs to the broker {found.broker}, and OPENBELL_BROKER is {self._broker}"
            )
        found.admit(principal, self._token)
        return found

    def ensure(self, journal: Journal, principal: str) -> Account:
        """The same, written down if it is new."""
        account = self.open(journal.view, principal)
        if not account.created_at:
            account = replace(account, created_at=journal.at)
            journal.put("account", account, new=True)
        return account

    async def listing(self) -> list[Account]:
        """Every account."""
        return await self._records.read(queries.all_accounts)

    async def add(self, name: str, broker: str, cash: Decimal, *, with_token: bool) -> str | None:
        """Make an account; its token, if it is to have one, is told this once."""
        token = new_token() if with_token else None

        def work(journal: Journal) -> None:
            if queries.account(journal.view, name) is not None:
                raise InvalidParameter(f"there is an account {name} already")
            held = None if token is None else hashed(token)
            journal.put("account", Account(name, broker, OPERATOR, cash, held, journal.at), new=True)

        await self._records.write(work)
        return token

    async def renew_token(self, name: str, *, remove: bool = False) -> str | None:
        """Give an account a new token, or none; the old one ends at once."""
        token = None if remove else new_token()

        def work(journal: Journal) -> None:
            found = queries.account(journal.view, name)
            if found is None:
                raise AccountNotFound(f"there is no account {name}", account=name)
            journal.put("account", replace(found, token=None if token is None else hashed(token)))

        await self._records.write(work)
        return token
