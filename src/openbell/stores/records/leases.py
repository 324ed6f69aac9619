"""Leases in the records: as those of the bar store, but several machines may share a PostgreSQL, so its clock counts there.

On SQLite all holders are processes of one machine, whose monotonic time counts. A holder that died on this machine is known
at once on both. All of it happens inside `Records.write`: writers come one at a time, and so do those who take a lease.
"""

from __future__ import annotations

import time
from math import inf

from sqlalchemy import Connection, insert, select, text, update

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores.leases import is_dead
from openbell.stores.port import Lease
from openbell.stores.records.tables import leases
from openbell.stores.records.view import View


def acquire(view: View | Connection, name: str, holder: str, ttl: float) -> Lease:
    """Take the lease if it is free, expired, or its holder has died."""
    row = view.execute(select(leases).where(leases.c.name == name)).first()
    now = _now(view)
    latest = now + 10 * ttl if _is_monotonic(view) else inf  # later than that is from before a reboot
    if row and row.holder not in {"", holder} and now < row.expires <= latest and not is_dead(row.holder):
        raise LeaseHeld(
            f"the {name} is already running as {row.holder}",
            holder=row.holder,
            expires_in_s=round(row.expires - now, 1),
        )
    token = (row.token if row else 0) + 1
    values = {"token": token, "holder": holder, "expires": now + ttl}
    if row:
        view.execute(update(leases).where(leases.c.name == name), values)
    else:
        view.execute(insert(leases), {"name": name, **values})
    return Lease(name, token, holder)


def renew(view: View | Connection, lease: Lease, ttl: float) -> None:
    """Move the expiry on. Raises `LeaseLost`."""
    check(view, lease)
    view.execute(update(leases).where(leases.c.name == lease.name), {"expires": _now(view) + ttl})


def release(view: View | Connection, lease: Lease) -> None:
    """Give it back, if it is still ours; the token stays, so that a late write is still refused."""
    mine = (leases.c.name == lease.name) & (leases.c.token == lease.token)
    view.execute(update(leases).where(mine), {"holder": "", "expires": 0.0})


def holder(view: View | Connection, name: str) -> str | None:
    """Who holds a lease now."""
    row = view.execute(select(leases).where(leases.c.name == name)).first()
    if row is None or not row.holder or row.expires < _now(view) or is_dead(row.holder):
        return None
    return str(row.holder)


def any_holder(view: View | Connection, prefix: str) -> str | None:
    """Who holds one of the leases whose names begin alike."""
    names = view.execute(select(leases.c.name).where(leases.c.name.startswith(prefix, autoescape=True))).scalars().all()
    return next((found for name in names if (found := holder(view, name))), None)


def check(view: View | Connection, lease: Lease) -> None:
    """Refuse unless the lease is still ours; called inside the write's own transaction."""
    row = view.execute(select(leases.c.token, leases.c.holder).where(leases.c.name == lease.name)).first()
    if row is None or row.token != lease.token or row.holder != lease.holder:
        raise LeaseLost(
            f"the lease of the {lease.name} has passed to {(row and row.holder) or 'nobody'}; nothing was written"
        )


def _now(view: View | Connection) -> float:
    if _is_monotonic(view):
        return time.monotonic()
    return float(view.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def _is_monotonic(view: View | Connection) -> bool:
    return view.dialect.name != "postgresql"
