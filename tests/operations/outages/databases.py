"""The stores on servers: records in PostgreSQL, bars in InfluxDB. The desk reaches both through proxies."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import httpx2

from tests.operations.outages.disks import Disk
from tests.operations.outages.faults import Fault, Store
from tests.operations.outages.proxy import Proxy, proxy_to
from tests.operations.outages.station import Station
from tests.stores.influx_server import InfluxServer
from tests.stores.records.postgres_server import PASSWORD as ADMIN_PASSWORD
from tests.stores.records.postgres_server import USER as ADMIN
from tests.stores.records.postgres_server import PostgresServer

_ROLE = "desk"
_PASSWORD, _OTHER_PASSWORD = "the-password", "another-password"
_BARS = "openbell_simulated_7"
_MEGABYTES = 64


@asynccontextmanager
async def databases(home: Path) -> AsyncIterator[tuple[Station, tuple[Store, ...]]]:
    """A desk with its two stores."""
    with closing(PostgresServer()) as postgres, closing(InfluxServer()) as influx:
        async with (
            proxy_to(postgres.port) as records_proxy,
            proxy_to(int(influx.url.rpartition(":")[2])) as bars_proxy,
        ):
            records = _Postgres(postgres, records_proxy)
            await records.prepare()
            bars = _Influx(influx, bars_proxy)
            bars.prepare()
            station = Station(
                home,
                database_url=f"postgresql://{_ROLE}:{_PASSWORD}@127.0.0.1:{records_proxy.port}/{_ROLE}",
                influx_url=f"http://127.0.0.1:{bars_proxy.port}",
                influx_token=f"{_ROLE}:{_PASSWORD}",
            )
            records.station = station
            yield station, (records.store(), bars.store())


class _Postgres:
    """A database with a tablespace on a small disk, and a role of its own."""

    def __init__(self, server: PostgresServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._kept = server.folder / "kept"
        self._disk: Disk
        self.station: Station

    async def prepare(self) -> None:
        """Create role and database."""
        self._disk = Disk(self._server.folder / "small", _MEGABYTES)
        place = self._disk.folder / "files"
        place.mkdir()
        owner = (self._server.folder / "data").stat()
        shutil.chown(place, owner.st_uid, owner.st_gid)
        await self._run(f"CREATE ROLE {_ROLE} LOGIN PASSWORD '{_PASSWORD}'")
        await self._run(f"CREATE TABLESPACE small OWNER {_ROLE} LOCATION '{place}'")
        await self._run(f"CREATE DATABASE {_ROLE} OWNER {_ROLE} TABLESPACE small")

    def store(self) -> Store:
        """The store and its conditions."""
        return Store(
            "Records in PostgreSQL",
            {
                "stopped": Fault("`pg_ctl stop -m immediate`", self._stop, self._start),
                "stalled": Fault("connections stay open, nothing is forwarded", self._stall, self._go_on),
                "refused": Fault("the role has another password", self._change_password, self._set_password),
                "full": Fault("the disk of its tablespace has no free block", self._fill, self._free, runs_out=True),
                "read-only": Fault(
                    "the role may only read (`REVOKE INSERT, UPDATE, DELETE`)", self._revoke, self._grant
                ),
                "restored older": Fault(
                    "an older copy of the cluster is put back",
                    self._put_back,
                    self._adopt,
                    restarts_after=True,
                    copy=self._copy,
                ),
            },
            holds_records=True,
        )

    async def _run(self, statement: str, database: str = "postgres") -> list[Any]:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=self._server.port, user=ADMIN, password=ADMIN_PASSWORD, database=database
        )
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    async def _stop(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await self._proxy.refuse()

    async def _start(self) -> None:
        # Not in another thread: the server ends with the thread that has started it.
        self._server.start()
        await self._proxy.listen()

    async def _stall(self) -> None:
        self._proxy.stall()

    async def _go_on(self) -> None:
        self._proxy.go_on()

    async def _change_password(self) -> None:
        await self._run(f"ALTER ROLE {_ROLE} PASSWORD '{_OTHER_PASSWORD}'")
        await self._run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{_ROLE}'")

    async def _set_password(self) -> None:
        await self._run(f"ALTER ROLE {_ROLE} PASSWORD '{_PASSWORD}'")

    async def _fill(self) -> None:
        self._disk.fill()

    async def _free(self) -> None:
        self._disk.free()

    async def _revoke(self) -> None:
        await self._change("REVOKE INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} FROM " + _ROLE)

    async def _grant(self) -> None:
        await self._change("GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO " + _ROLE)

    async def _change(self, statement: str) -> None:
        for schema in await self._run("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'openbell%'", _ROLE):
            await self._run(statement.format(schema), _ROLE)

    async def _copy(self) -> None:
        await self._stop()
        shutil.rmtree(self._kept, ignore_errors=True)
        for name, folder in self._folders():
            shutil.copytree(folder, self._kept / name, symlinks=True)
        await self._start()

    async def _put_back(self) -> None:
        await self._stop()
        for name, folder in self._folders():
            for part in folder.iterdir():
                shutil.rmtree(part) if part.is_dir() and not part.is_symlink() else part.unlink()
            shutil.copytree(self._kept / name, folder, symlinks=True, dirs_exist_ok=True)
            owner = self._server.folder.stat()
            for path in (folder, *folder.rglob("*")):
                shutil.chown(path, owner.st_uid, owner.st_gid) if not path.is_symlink() else None
        await self._start()

    def _folders(self) -> tuple[tuple[str, Path], ...]:
        return ("data", self._server.folder / "data"), ("files", self._disk.folder / "files")

    async def _adopt(self) -> None:
        await self.station.adopt()


class _Influx:
    """A server that asks for a password, with its data on a small disk."""

    def __init__(self, server: InfluxServer, proxy: Proxy) -> None:
        self._server = server
        self._proxy = proxy
        self._kept = server.folder / "kept"
        self._disk: Disk

    def prepare(self) -> None:
        """Create users, then start again with passwords and the small disk."""
        self._server.kill()
        self._disk = Disk(self._server.folder / "small", _MEGABYTES)
        configuration = self._server.folder / "influx.conf"
        text = configuration.read_text()
        for name in ("data", "wal", "meta"):
            text = text.replace(f"{self._server.folder}/{name}", f"{self._disk.folder}/{name}")
        configuration.write_text(text)
        self._server.start()
        self._server.query(f"CREATE USER {ADMIN} WITH PASSWORD '{ADMIN_PASSWORD}' WITH ALL PRIVILEGES")
        self._server.kill()
        configuration.write_text(text.replace("auth-enabled = false", "auth-enabled = true"))
        self._server.start()
        self._ask(f"CREATE DATABASE {_BARS}")
        self._ask(f"CREATE USER {_ROLE} WITH PASSWORD '{_PASSWORD}'")
        self._ask(f"GRANT ALL ON {_BARS} TO {_ROLE}")

    def store(self) -> Store:
        """The store and its conditions."""
        return Store(
            "Bars in InfluxDB",
            {
                "stopped": Fault("the process is killed", self._stop, self._start),
                "stalled": Fault("connections stay open, nothing is forwarded", self._stall, self._go_on),
                "refused": Fault("the user has another password", self._change_password, self._set_password),
                "full": Fault("the disk of its data has no free block", self._fill, self._free),
                "read-only": Fault("the user may only read (`GRANT READ`)", self._revoke, self._grant),
                "restored older": Fault(
                    "an older copy of its data is put back while the desk is stopped",
                    self._put_back,
                    self._leave,
                    restarts=True,
                    copy=self._copy,
                ),
            },
            holds_records=False,
        )

    def _ask(self, statement: str) -> None:
        answer = httpx2.post(
            f"{self._server.url}/query", params={"q": statement}, auth=(ADMIN, ADMIN_PASSWORD), timeout=30
        )
        assert answer.status_code == 200, answer.text
        assert "error" not in answer.text, answer.text

    async def _stop(self) -> None:
        await asyncio.to_thread(self._server.kill)
        await self._proxy.refuse()

    async def _start(self) -> None:
        self._server.start()
        await self._proxy.listen()

    async def _stall(self) -> None:
        self._proxy.stall()

    async def _go_on(self) -> None:
        self._proxy.go_on()

    async def _change_password(self) -> None:
        await asyncio.to_thread(self._ask, f"SET PASSWORD FOR {_ROLE} = '{_OTHER_PASSWORD}'")

    async def _set_password(self) -> None:
        await asyncio.to_thread(self._ask, f"SET PASSWORD FOR {_ROLE} = '{_PASSWORD}'")

    async def _fill(self) -> None:
        self._disk.fill()

    async def _free(self) -> None:
        self._disk.free()

    async def _revoke(self) -> None:
        await asyncio.to_thread(self._ask, f"REVOKE WRITE ON {_BARS} FROM {_ROLE}")

    async def _grant(self) -> None:
        await asyncio.to_thread(self._ask, f"GRANT ALL ON {_BARS} TO {_ROLE}")

    async def _copy(self) -> None:
        await self._stop()
        shutil.rmtree(self._kept, ignore_errors=True)
        shutil.copytree(self._disk.folder, self._kept)
        await self._start()

    async def _put_back(self) -> None:
        await self._stop()
        for part in self._disk.folder.iterdir():
            shutil.rmtree(part)
        shutil.copytree(self._kept, self._disk.folder, dirs_exist_ok=True)
        await self._start()

    async def _leave(self) -> None:
        """Nothing is done: the copy stays."""
