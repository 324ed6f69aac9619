"""Locates and opens the records: one database for the present of each market, and one for each scenario.

Simulated and real records are never in the same database. A scenario's database is in a folder under `scenarios/` in its
market's folder, or in a PostgreSQL schema of its own. So each scenario has its own ledger, leases and locks, and scenarios
never wait for each other.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from openbell.desk.settings import DEFAULT_SEED
from openbell.market.errors import InvalidParameter, Refused, SettingsError
from openbell.stores.records import leases, snapshot
from openbell.stores.records.database import Database
from openbell.stores.records.journal import head_of
from openbell.stores.records.ledger_head_file import HeadFile
from openbell.stores.records.records import RecordAccess, Records
from openbell.stores.records.snapshot import View
from openbell.trading.accounts import PAPER

if TYPE_CHECKING:
    from openbell.desk.settings import Settings
    from openbell.market.clock import Clock
    from openbell.stores.records.postgres import PoolLimits, PostgresDatabase

_SEED = re.compile(r"-?\d{1,18}")
_LONGEST_SCHEMA = 63
"""PostgreSQL truncates longer names, so that two markets could get the same schema."""
ENGINE = "engine"
"""The name of the lease of the engine, which fills orders and fires alerts."""


def make_records(settings: Settings, clock: Clock, scenario: str | None = None) -> Records:
    """Returns the records of a scenario, or of the present if there is none, with the access that the clock allows."""
    present = RecordAccess.PAST if settings.other_clock else RecordAccess.PRESENT
    access = present if scenario is None else RecordAccess.SCENARIO
    creates = not settings.read_only and access is not RecordAccess.PAST
    database: Database
    if settings.database_url:
        database = _postgres(settings, scenario, creates=creates)
        head = scenario_folder(settings, scenario) / f"ledger-{crc32(f'{database.where}'.encode()):08x}.head"
    else:
        from openbell.stores.records.sqlite import SqliteDatabase

        folder = scenario_folder(settings, scenario)
        database, head = SqliteDatabase(folder / "records.sqlite", read_only=settings.read_only), folder / "ledger.head"
    verify = "openbell verify" if scenario is None else f"openbell verify --scenario {scenario}"
    return Records(database, HeadFile(head, verify), clock, access, name=scenario or "", read_only=settings.read_only)


def scenario_folder(settings: Settings, scenario: str | None) -> Path:
    """Returns the folder of a scenario's files, or of the present's."""
    return settings.market_folder if scenario is None else settings.market_folder / "scenarios" / scenario


def _schema(settings: Settings, scenario: str | None) -> str:
    market = f"openbell_simulated_{settings.sim_seed}".replace("-", "m") if settings.simulated else "openbell"
    return market if scenario is None else f"{market}_scenario_{scenario}"


def _postgres(settings: Settings, scenario: str | None, *, creates: bool = True) -> PostgresDatabase:
    from openbell.stores.records.postgres import PostgresDatabase

    name = _schema(settings, scenario)
    if len(name) > _LONGEST_SCHEMA:
        raise SettingsError(
            f"PostgreSQL has no room for the name {name}: use a seed or a scenario whose name is "
            f"{len(name) - _LONGEST_SCHEMA} characters shorter"
        )
    return PostgresDatabase(
        url=settings.database_url,
        schema=name,
        pool=postgres_pool(settings),
        creates=creates,
        home=settings.market_folder,
    )


def postgres_pool(settings: Settings) -> PoolLimits:
    """Returns the limits of connections to PostgreSQL."""
    from openbell.stores.records.postgres import PoolLimits

    return PoolLimits(
        least=settings.pool_postgres_min,
        most=settings.pool_postgres_max,
        idle=settings.pool_postgres_idle,
        connect=settings.pool_postgres_connect,
        timeout=settings.pool_postgres_timeout,
    )


async def markets(settings: Settings) -> list[Settings]:
    """Returns the settings of every market with records in this home: first `settings`, then the others, on paper.

    Raises `StoreError` if PostgreSQL cannot be read.
    """
    seeds = await _simulated_seeds(settings)
    found = [replace(settings, feed="sim", sim_seed=seed, broker=PAPER, account="") for seed in sorted(seeds)]
    if await _has_real_records(settings):
        # Records do not name their feed: only stored bars can be used.
        found.append(replace(settings, feed="none", broker=PAPER, account=""))
    own = _schema(settings, None)
    return [settings, *(each for each in found if _schema(each, None) != own)]


async def _simulated_seeds(settings: Settings) -> set[int]:
    if settings.database_url:
        prefix = "openbell_simulated_"
        names = [name.removeprefix(prefix).replace("m", "-") for name in await _schemas(settings, prefix)]
        return {int(name) for name in names if _SEED.fullmatch(name)}
    folder = settings.home / "simulated"
    seeds = {DEFAULT_SEED} if (folder / "records.sqlite").exists() else set()
    # Other folders, such as a copy seed-8.bak, are not markets.
    names = [each.parent.name.removeprefix("seed-") for each in folder.glob("seed-*/records.sqlite")]
    return seeds | {int(name) for name in names if _SEED.fullmatch(name)}


async def _has_real_records(settings: Settings) -> bool:
    if settings.database_url:
        return "openbell" in await _schemas(settings, "openbell")
    return (settings.home / "records.sqlite").exists()


async def _schemas(settings: Settings, prefix: str) -> list[str]:
    database = _postgres(settings, None, creates=False)
    try:
        return await database.schema_names(prefix)
    finally:
        await database.close()


class Scenarios:
    """Lists and removes the scenarios of a market, for `openbell scenario`."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def names(self) -> list[str]:
        """Returns the name of every scenario that has records or files."""
        folder = scenario_folder(self._settings, "x").parent
        found = {each.name for each in folder.iterdir() if each.is_dir()} if folder.is_dir() else set()
        if self._settings.database_url:
            prefix = _schema(self._settings, "")
            found |= {name.removeprefix(prefix) for name in await _schemas(self._settings, prefix)}
        return sorted(found)

    async def describe(self, name: str) -> tuple[int, float, str | None]:
        """Returns its number of ledger entries, its latest time, and the holder of its engine lease."""

        def work(view: View) -> tuple[int, float, str | None]:
            return head_of(view.connection).seq, snapshot.last_moment(view), leases.any_holder(view, ENGINE)

        records = self._records(name)
        try:
            return await records.read(work, check_head=False)
        finally:
            await records.close()

    async def check(self, name: str) -> None:
        """Raise `InvalidParameter` if there is no such scenario."""
        if name not in await self.names():
            raise InvalidParameter(f"no scenario {name[:40]!r}; openbell scenario list shows all scenarios")

    async def remove(self, name: str, *, keep: bool) -> None:
        """Remove a scenario; with `keep`, only empty it. Raises `Refused` while a process holds its engine lease."""
        await self.check(name)
        holder = (await self.describe(name))[2]
        if holder is not None:
            raise Refused(f"the scenario {name} is in use by {holder}: stop that process first")
        if self._settings.database_url:
            database = _postgres(self._settings, None, creates=False)
            try:
                await database.drop_schema(_schema(self._settings, name))
            finally:
                await database.close()
        folder = scenario_folder(self._settings, name)
        shutil.rmtree(folder, ignore_errors=True)
        if keep:
            folder.mkdir(parents=True, exist_ok=True)

    def _records(self, name: str) -> Records:
        return make_records(replace(self._settings, read_only=True), self._clock, name)
