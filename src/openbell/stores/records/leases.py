"""Leases in the records, inside the transaction of `Records.read` or `Records.write`.

Several machines may share a PostgreSQL database, so its own clock is used there. On SQLite all holders are processes of one
machine, and times are monotonic.
"""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert, select, text, update

from openbell.stores import leases as rules
from openbell.stores.leases import Holders, LeaseRow
from openbell.stores.port import Lease
from openbell.stores.records.schema import HOME
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import leases


class RecordLeases:
    """Implements `stores.leases.LeaseTable`."""

    def __init__(self, view: View | Connection) -> None:
        self._view = view

    @property
    def holders(self) -> Holders:
        """See the port."""
        connection = self._view.connection if isinstance(self._view, View) else self._view
        return Holders(connection.get_execution_options().get(HOME))

    @property
    def is_monotonic(self) -> bool:
        """See the port."""
        return self._view.dialect.name != "postgresql"

    def now(self) -> float:
        """See the port."""
        if self.is_monotonic:
            return time.monotonic()
        return float(self._view.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())

    def get(self, name: str) -> LeaseRow | None:
        """See the port."""
        row = self._view.execute(select(leases).where(leases.c.name == name)).first()
        return LeaseRow(row.token, row.holder, row.expires) if row else None

    def put(self, name: str, row: LeaseRow) -> None:
        """See the port."""
        values = {"token": row.token, "holder": row.holder, "expires": row.expires}
        if not self._view.execute(update(leases).where(leases.c.name == name), values).rowcount:
            self._view.execute(insert(leases), {"name": name, **values})


def acquire(view: View | Connection, name: str, holder: str, ttl: float) -> Lease:
    """Take a lease for `ttl` seconds if it is free, expired, or its holder has died. Raises `LeaseHeld`."""
    return rules.acquire(RecordLeases(view), name, holder, ttl)


def renew(view: View | Connection, lease: Lease, ttl: float) -> None:
    """Let a lease expire `ttl` seconds from now. Raises `LeaseLost`."""
    rules.renew(RecordLeases(view), lease, ttl)


def release(view: View | Connection, lease: Lease) -> None:
    """Free a lease if its token is the current one."""
    rules.release(RecordLeases(view), lease)


def check(view: View | Connection, lease: Lease) -> None:
    """Raise `LeaseLost` unless `lease` is still the current one."""
    rules.check(RecordLeases(view), lease)


def holder(view: View | Connection, name: str) -> str | None:
    """The process that holds a lease now; None if there is none."""
    return rules.current_holder(RecordLeases(view), name)


def any_holder(view: View | Connection, prefix: str) -> str | None:
    """The holder of any lease whose name starts with `prefix`; None if there is none."""
    names = view.execute(select(leases.c.name).where(leases.c.name.startswith(prefix, autoescape=True))).scalars().all()
    return next((found for name in names if (found := holder(view, name))), None)
