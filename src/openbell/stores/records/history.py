"""Tables as they were: the ledger holds every version of every row, and a desk whose clock stands in the past sees those."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from openbell.stores.records.tables import ledger
from openbell.trading.rows import from_row

T = TypeVar("T")


def known_at(connection: Connection, kind: str, value: type[T], moment: float) -> list[T]:
    """Every row of a kind as it was last written by some time on the desk's clock, in the order of their making."""
    found: dict[str, dict[str, Any]] = {}
    rows = connection.execute(select(ledger.c.key, ledger.c.body).where(ledger.c.kind == kind).order_by(ledger.c.seq))
    for key, body in rows:
        row = json.loads(body)
        if row["updated_at"] <= moment:
            found[key] = row
    return [from_row(value, row) for row in found.values()]
