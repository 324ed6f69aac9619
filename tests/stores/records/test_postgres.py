"""PostgreSQL only: the number of connections, and what happens when they break."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from threading import Event, Thread

import asyncpg  # type: ignore[import-untyped]
import pytest
from sqlalchemy import Connection, insert, text

from openbell.market.errors import SettingsError, StoreError, StoreTimeout
from openbell.stores.records.journal import Journal
from openbell.stores.records.postgres import PoolLimits, PostgresDatabase, read_url
from openbell.stores.records.records import Records
from openbell.stores.records.snapshot import View
from openbell.stores.records.tables import marks
from tests.stores.records import partner
from tests.stores.records.contract import assert_hides, put, rows, run
from tests.stores.records.partner import Partner
from tests.stores.records.places import Place, decision
from tests.stores.records.postgres_server import PASSWORD, PostgresServer
from tests.stores.records.proxy import line_to
from tests.waiting import PATIENCE, until

OURS = "FROM pg_stat_activity WHERE application_name = 'openbell'"


@pytest.fixture
def place(on_postgres: Place) -> Place:
    return on_postgres


def slowly(connection: Connection | View) -> int:
    """Hold a connection for a moment. Returns the number of connections."""
    connection.execute(text("SELECT pg_sleep(0.05)"))
    return int(connection.execute(text(f"SELECT count(*) {OURS}")).scalar_one())


def asleep(connection: Connection | View) -> None:
    connection.execute(text("SELECT pg_sleep(30)"))


def quickly(connection: Connection | View) -> int:
    return int(connection.execute(text("SELECT 7")).scalar_one())


class Observer:
    """Counts the connections from outside."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def count(self) -> int:
        """The number of our connections at the server."""
        return int(await self._connection.fetchval(f"SELECT count(*) {OURS}"))

    async def until(self, wanted: Callable[[int], bool]) -> int:
        """Wait until their number fulfils a condition."""
        deadline = time.monotonic() + 20
        while not wanted(found := await self.count()):
            assert time.monotonic() < deadline, f"there are still {found} connections"
            await asyncio.sleep(0.005)
        return found


@asynccontextmanager
async def observed(place: Place, pool: PoolLimits) -> AsyncIterator[tuple[Records, Observer]]:
    """Records with a pool, and an observer."""
    connection = await asyncpg.connect(place.url, server_settings={"application_name": "observer"})
    try:
        observer = Observer(connection)
        await observer.until(lambda count: count == 0)
        async with place.opened(pool=pool) as records:
            yield records, observer
        await observer.until(lambda count: count == 0)
    finally:
        await connection.close()


# The number of connections


def test_the_least_number_of_connections_is_opened_and_kept(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=3, idle=0.05)) as (records, observer):
            await records.read(quickly)
            await observer.until(lambda count: count == 3)
            for _ in range(20):
                await records.read(quickly)
                assert await observer.count() == 3

    run(main)


def test_there_are_never_more_connections_than_the_most_and_callers_wait(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=2, most=3)) as (records, observer):
            seen = await asyncio.gather(*(records.read(slowly) for _ in range(15)))
            assert max(seen) == 3
            assert await observer.count() == 3

    run(main)


def test_idle_connections_beyond_the_least_are_closed(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=1, most=5, idle=0.4)) as (records, observer):
            await records.read(quickly)
            await asyncio.gather(*(records.read(slowly) for _ in range(10)))
            began = time.monotonic()
            assert await observer.count() == 5
            await observer.until(lambda count: count == 1)
            assert time.monotonic() - began > 0.2
            assert await records.read(quickly) == 7

    run(main)


def test_waiting_writers_leave_connections_to_readers(place: Place) -> None:
    async def main() -> None:
        async with place.opened(pool=PoolLimits(least=1, most=2)) as records:
            await records.write(put("first"))
            with in_line_before(place):
                writers = [asyncio.ensure_future(records.write(put(f"w{n}"))) for n in range(6)]
                await asyncio.wait(writers, timeout=0.1)
                async with asyncio.timeout(5):
                    assert len(await records.read(rows)) == 1
                assert not any(writer.done() for writer in writers)
            assert sorted(await asyncio.gather(*writers)) == [2, 3, 4, 5, 6, 7]

    run(main)


@contextmanager
def in_line_before(place: Place) -> Iterator[None]:
    """Another writer that holds the lock during the block."""
    begun, enough = Event(), Event()

    def work(_journal: Journal) -> None:
        begun.set()
        enough.wait(PATIENCE)

    async def write() -> None:
        async with place.opened() as other:
            await other.write(work)

    thread = Thread(target=lambda: asyncio.run(write()))
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        enough.set()
        thread.join()


def test_creating_the_same_schema_at_once_does_not_fail(place: Place) -> None:
    async def main() -> None:
        databases = [place.database(PoolLimits(least=0)) for _ in range(8)]
        assert await asyncio.gather(*(each.run(quickly, writing=False) for each in databases)) == [7] * 8
        await asyncio.gather(*(each.close() for each in databases))

    run(main)


# Servers that do not answer


def test_a_server_that_does_not_answer_raises_a_timeout_within_its_bound(place: Place) -> None:
    async def main() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            url = f"postgresql://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/postgres"
            async with replace(place, url=url).opened(pool=PoolLimits(connect=0.3)) as records:
                began = time.monotonic()
                with pytest.raises(
                    StoreTimeout, match=r"no connection to PostgreSQL at 127.0.0.1:.* in 0.3 s"
                ) as caught:
                    await records.read(quickly)
                assert 0.2 < time.monotonic() - began < 2
                assert_hides(caught.value, PASSWORD)

    run(main)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda url: url.replace(PASSWORD, "wr0ng-password"), "it refused the user or the password"),
        (lambda url: url.replace("/postgres", "/nowhere"), "there is no such database"),
        (lambda url: url.rpartition(":")[0] + ":1/postgres", "nothing listens there"),
    ],
)
def test_a_server_that_refuses_is_named_without_the_password(
    place: Place, change: Callable[[str], str], reason: str
) -> None:
    async def main() -> None:
        async with replace(place, url=change(place.url)).opened() as records:
            with pytest.raises(StoreError, match=f"no connection to PostgreSQL at 127.0.0.1:.*{reason}") as caught:
                await records.write(put("d"))
            assert_hides(caught.value, PASSWORD, "wr0ng-password")

    run(main)


def test_a_url_that_cannot_be_read_is_refused_without_repeating_it() -> None:
    for url in (f"postgresql://me:{PASSWORD}@host:port/x", f"mysql://me:{PASSWORD}@host/x", PASSWORD):
        with pytest.raises(SettingsError) as caught:
            read_url(url)
        assert_hides(caught.value, PASSWORD)


def test_the_usual_options_of_a_url_are_understood(place: Place) -> None:
    async def main() -> None:
        async with replace(place, url=f"{place.url}?sslmode=disable").opened() as records:
            assert await records.read(quickly) == 7
        database = PostgresDatabase(f"postgres://me:{PASSWORD}@127.0.0.1/x?sslmode=require", "main")
        assert database.where == "127.0.0.1:5432/x, schema main"

    run(main)


def test_a_statement_that_takes_too_long_raises_a_timeout(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(timeout=0.3)) as (records, _):
            assert await records.read(quickly) == 7
            with pytest.raises(StoreTimeout, match="did not answer in time"):
                await records.read(asleep)
            with pytest.raises(StoreTimeout, match="did not answer in time"):
                await records.write(lambda journal: asleep(journal.connection))
            assert await records.read(quickly) == 7

    run(main)


@pytest.mark.parametrize(
    "work",
    [
        lambda c: c.execute(text("SELECT CAST('hidden-value' AS integer)")),
        lambda c: c.execute(text("SELECT CAST(CAST(:v AS text) AS integer)"), {"v": "hidden-value"}),
        lambda c: c.execute(insert(marks), {"name": "a", "until": "hidden-value"}),
        lambda c: c.execute(insert(marks), {"name": "hidden-value\0", "until": 1.0}),
    ],
)
def test_an_error_does_not_repeat_the_value_that_caused_it(place: Place, work: Callable[[Connection], object]) -> None:
    async def main() -> None:
        async with place.opened() as records:
            with pytest.raises(StoreError, match="cannot hold a value") as caught:
                await records.write(lambda journal: work(journal.connection))
            assert_hides(caught.value, "hidden-value")

    run(main)


# Connections that break


@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("act", ["read", "write"])
def test_the_next_call_survives_that_all_connections_were_ended(
    place: Place, server: PostgresServer, act: str, noticed: bool
) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=2, most=4)) as (records, _):
            await records.write(put("first"))
            await asyncio.gather(*(records.read(slowly) for _ in range(8)))

            def end() -> None:
                server.ask(f"SELECT pg_terminate_backend(pid, 5000) {OURS}")

            if noticed:
                await asyncio.to_thread(end)
            else:  # block the event loop: nothing else may run meanwhile
                thread = Thread(target=end)
                thread.start()
                thread.join()
            if act == "read":
                assert len(await records.read(rows)) == 1
            else:
                assert await records.write(put("second")) == 2
            assert await place.faults() == []

    run(main)


def test_a_restart_of_the_server_is_survived(
    place: Place, server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with place.opened(pool=PoolLimits(least=2, idle=0.1)) as records:
            assert isinstance(records.database, PostgresDatabase)
            await records.write(put("first"))
            server.stop()
            try:
                with pytest.raises(StoreError, match="no connection to PostgreSQL"):
                    await records.read(rows)
                await until(lambda: "; retrying" in caplog.text, "the sweeper to try")
            finally:
                server.start()
            assert await records.write(put("second")) == 2
            idle = records.database
            await until(lambda: idle.idle >= 2, "the least to be there again")
            assert await place.faults() == []

    with caplog.at_level(logging.WARNING, "openbell"):
        run(main)


@pytest.mark.parametrize(("cut", "written"), [("before", 1), ("after", 2)])
def test_a_commit_without_an_answer_is_reported_as_unknown_and_not_repeated(
    place: Place, server: PostgresServer, cut: str, written: int
) -> None:
    async def main() -> None:
        async with line_to(server.port) as (line, port):
            through = replace(place, url=place.url.replace(f":{server.port}", f":{port}"))
            async with through.opened() as records:
                await records.write(put("first"))
                times: list[int] = []

                def work(journal: Journal) -> None:
                    times.append(journal.put("decision", decision("second")))

                line.cut = cut
                with pytest.raises(StoreError, match="it is unknown whether this was written") as caught:
                    await records.write(work)
                line.cut = ""
                assert caught.value.details == {"outcome": "unknown"}
                assert times == [2]
                assert len(await place.entries()) == written
                assert await records.write(put("third")) == written + 1
                assert await place.faults() == []

    run(main)


def test_a_connection_that_breaks_before_the_commit_writes_nothing_and_is_not_repeated(
    place: Place, server: PostgresServer
) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            times: list[int] = []

            def work(journal: Journal) -> None:
                times.append(journal.put("decision", decision("second")))
                journal.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

            with pytest.raises(StoreError, match="failed"):
                await records.write(work)
            assert times == [2]
            assert await records.write(put("second")) == 2
            assert await place.faults() == []

    run(main)


def test_a_process_stopped_during_a_write_does_not_block_the_others(place: Place) -> None:
    async def main() -> None:
        async with place.opened() as records:
            await records.write(put("first"))
            with Partner(partner.stall, place) as stalled:
                stalled.go()
                assert await asyncio.to_thread(stalled.hear) == "inside"
                assert await records.write(put("second")) == 2
                stalled.resume()
                assert await asyncio.to_thread(stalled.hear) == "StoreError"
            assert [row["id"] for row in await records.read(rows)] == ["first", "second"]
            assert await place.faults() == []

    run(main)


# Cancelled callers


def test_cancelled_callers_leak_no_connection(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=0, most=2)) as (records, observer):
            await records.read(quickly)
            for _ in range(3):
                callers = [asyncio.ensure_future(records.read(asleep)) for _ in range(6)]
                await observer.until(lambda count: count == 2)
                for caller in reversed(callers):
                    caller.cancel()
                await asyncio.wait(callers)
                assert await asyncio.gather(*(records.read(quickly) for _ in range(6))) == [7] * 6
            assert max(await asyncio.gather(*(records.read(slowly) for _ in range(6)))) == 2

    run(main)


def test_a_cancelled_caller_does_not_wait_until_its_connection_is_closed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        stalls, close = asyncio.Event(), asyncpg.Connection.close

        async def close_late(connection: asyncpg.Connection, **options: object) -> None:
            await stalls.wait()
            await close(connection, **options)

        async with place.opened(pool=PoolLimits(least=0)) as records:
            await records.read(quickly)
            with monkeypatch.context() as patch:
                patch.setattr(asyncpg.Connection, "close", close_late)
                caller = asyncio.ensure_future(records.read(asleep))
                await until(lambda: records.database._busy == 1, "the statement")  # type: ignore[attr-defined]
                caller.cancel()
                done, _ = await asyncio.wait([caller], timeout=PATIENCE)
                assert done
                stalls.set()
                await until(lambda: records.database._busy == 0, "the connection")  # type: ignore[attr-defined]

    run(main)


def test_a_connection_keeps_nothing_of_its_transactions(place: Place) -> None:
    async def main() -> None:
        async with place.opened(pool=PoolLimits(least=1, most=1)) as records:

            async def kept() -> int:
                for _ in range(50):
                    await records.read(quickly)
                gc.collect()
                return len(gc.get_objects())

            await kept()  # statements are prepared once
            before = await kept()
            # What other threads make in one round is not kept in all of them.
            assert min([await kept() for _ in range(3)]) < before + 50

    run(main)


def test_a_caller_cancelled_while_connecting_leaks_no_connection(place: Place) -> None:
    async def main() -> None:
        async with observed(place, PoolLimits(least=0, most=2)) as (records, observer):
            await records.read(quickly)
            await asyncio.gather(*(records.read(slowly) for _ in range(2)))
            assert isinstance(records.database, PostgresDatabase)
            for steps in range(0, 60, 4):
                records.database._close_all_idle()
                caller = asyncio.ensure_future(records.read(quickly))
                for _ in range(steps):
                    await asyncio.sleep(0)
                caller.cancel()
                await asyncio.wait([caller])
            assert max(await asyncio.gather(*(records.read(slowly) for _ in range(6)))) <= 3
            await observer.until(lambda count: count <= 2)

    run(main)


# The server's own settings


def test_a_server_whose_default_is_another_isolation_keeps_one_chain(place: Place, server: PostgresServer) -> None:
    server.ask("ALTER DATABASE postgres SET default_transaction_isolation = 'serializable'")
    server.ask("ALTER DATABASE postgres SET synchronous_commit = 'off'")
    try:

        async def main() -> None:
            desks = [place.open(pool=PoolLimits(least=1)) for _ in range(4)]
            await asyncio.gather(*(desk.write(put(f"d{n}")) for n, desk in enumerate(desks * 5)))
            assert await desks[0].read(lambda c: c.execute(text("SHOW synchronous_commit")).scalar()) == "on"
            await asyncio.gather(*(desk.close() for desk in desks))
            assert len(await place.entries()) == 20
            assert await place.faults() == []

        run(main)
    finally:
        server.ask("ALTER DATABASE postgres RESET ALL")


def test_a_user_who_may_not_create_schemas_can_use_an_existing_one(place: Place, server: PostgresServer) -> None:
    server.ask("CREATE ROLE clerk LOGIN PASSWORD 'clerk'")
    server.ask(f'CREATE SCHEMA "{place.schema}" AUTHORIZATION clerk')

    async def main() -> None:
        async with replace(place, url=place.url.replace(f"openbell:{PASSWORD}", "clerk:clerk")).opened() as records:
            assert await records.write(put("first")) == 1
        other = replace(place, url=place.url.replace(f"openbell:{PASSWORD}", "clerk:clerk"), schema="another")
        async with other.opened() as records:
            with pytest.raises(StoreError, match="permission denied for database"):
                await records.write(put("first"))

    try:
        run(main)
    finally:
        server.ask("DROP OWNED BY clerk CASCADE")
        server.ask("DROP ROLE clerk")


def test_schemas_of_one_database_are_independent(place: Place) -> None:
    async def main() -> None:
        other = replace(place, schema=f'{place.schema} "quoted"', folder=place.folder / "other")
        async with place.opened() as records, other.opened() as others:
            await asyncio.gather(*(some.write(put(f"d{n}")) for n, some in enumerate([records, others] * 5)))
            assert len(await records.read(rows)) == len(await others.read(rows)) == 5

    run(main)
