"""What the databases hold, read past the desk: with connections of its own that are closed again."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import httpx2

_STATES = "SELECT id, state FROM orders"
_FILLS = "SELECT order_id, at FROM fills"
_FIRED = "SELECT id, fired_at FROM alerts WHERE state = 'fired'"
_INBOX = "SELECT alert_id, cursor FROM inbox"
_CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'openbell'"


@dataclass
class Observed:
    """The records of a desk."""

    states: dict[str, str] = field(default_factory=dict)
    """Of orders, by id."""
    fills: dict[str, list[float]] = field(default_factory=dict)
    """The times of fills, by order."""
    fired: dict[str, float] = field(default_factory=dict)
    """The times of alerts that have fired, by id."""
    inbox: Counter[str] = field(default_factory=Counter)
    """How many notifications there are, by alert."""
    connections: int = 0
    """Of the desk to PostgreSQL."""

    def add(self, states: Any, fills: Any, fired: Any, inbox: Any) -> None:
        """Add the rows of the four queries."""
        self.states |= dict(states)
        for name, at in fills:
            self.fills.setdefault(name, []).append(float(at))
        self.fired |= {name: float(at) for name, at in fired}
        self.inbox.update(name for name, _ in inbox)


async def records_in_postgres(url: str) -> Observed:
    """Returns the records in a PostgreSQL database."""
    observed = Observed()
    connection = await asyncpg.connect(
        url, server_settings={"application_name": "observer", "search_path": "openbell"}, statement_cache_size=0
    )
    try:
        observed.add(*[await connection.fetch(each) for each in (_STATES, _FILLS, _FIRED, _INBOX)])
        observed.connections = await connection.fetchval(_CONNECTIONS)
    finally:
        await connection.close()
    return observed


def rows_in_postgres(url: str, statement: str) -> list[Any]:
    """Returns the rows of a query of the records in a PostgreSQL database."""

    async def fetched() -> list[Any]:
        connection = await asyncpg.connect(url, server_settings={"search_path": "openbell"})
        try:
            return list(await connection.fetch(statement))
        finally:
            await connection.close()

    return asyncio.run(fetched())


def records_in_sqlite(path: Path) -> Observed:
    """Returns the records in an SQLite file."""
    observed = Observed()
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        observed.add(*(connection.execute(each).fetchall() for each in (_STATES, _FILLS, _FIRED, _INBOX)))
    return observed


def minutes_in_influx(url: str, start: int, end: int) -> dict[str, int]:
    """Returns how many minutes of each symbol InfluxDB holds in a span."""
    statement = f'SELECT count("close") FROM candles WHERE time >= {start}s AND time < {end}s GROUP BY currency_pair'
    with httpx2.Client(base_url=url, verify=False, timeout=60) as client:
        answer = client.post("/query", params={"q": statement, "db": "openbell"}).json()
    found = answer["results"][0].get("series", [])
    return {each["tags"]["currency_pair"]: int(each["values"][0][1]) for each in found}
