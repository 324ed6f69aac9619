"""Two machines on one PostgreSQL, as their operator sees them: `openbell up` and `openbell verify` of two homes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from tests.client import OPENBELL, environment, run
from tests.servers.desks import fresh_database
from tests.stores.records.postgres_server import PostgresServer
from tests.waiting import wait_for

TRUNCATE = "DELETE FROM openbell.{} WHERE seq > 1"


@contextmanager
def up(home: Path, url: str) -> Iterator[list[str]]:
    """A running desk. Yields the lines that it has printed so far."""
    process = subprocess.Popen(
        [*OPENBELL, "up", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(home, FEED="none", DATABASE_URL=url),
    )
    lines: list[str] = []

    def read() -> None:
        assert process.stdout
        lines.extend(iter(process.stdout.readline, ""))

    reader = Thread(target=read)
    reader.start()
    try:
        yield lines
    finally:
        process.terminate()
        process.wait(30)
        reader.join()
        assert process.stdout
        process.stdout.close()


def shown(lines: list[str]) -> str:
    """The state of the engine in the last line of the view."""
    states = [line.partition("engine: ")[2].partition("; orders: ")[0] for line in [*lines] if "; orders: " in line]
    return states[-1] if states else ""


def test_a_standby_says_at_once_that_it_cannot_take_over_and_both_go_on_after_verify_adopt(
    server: PostgresServer, tmp_path: Path
) -> None:
    url, one, two = fresh_database(server), tmp_path / "one", tmp_path / "two"

    def openbell(home: Path, *words: str) -> tuple[int, str]:
        done = run(home, *words, FEED="none", DATABASE_URL=url)
        return done.returncode, done.stdout + done.stderr

    with up(one, url) as first:
        wait_for(lambda: shown(first) == "working", "the first engine")
        for name in ("a", "b"):
            assert openbell(one, "account", "add", name)[0] == 0
        head = openbell(one, "verify")[1].rpartition("head  ")[2].strip()
        with up(two, url) as second:
            wait_for(lambda: "cannot take over" in shown(second), "a warning of the second")
            assert "this home has noted no head of it; run openbell verify --adopt" in shown(second)
            assert sum("the engine is standing by, but cannot take over" in line for line in second) == 1
            assert openbell(two, "verify", "--adopt", "--head", head)[0] == 0
            wait_for(lambda: shown(second) == "standing by", "the second")

            # The database is restored from an older copy.
            for table in ("ledger", "accounts"):
                server_ask(url, TRUNCATE.format(table))
            wait_for(
                lambda: "not those that were written" in shown(second) or "replaced" in shown(second), "the second"
            )
            for home in (one, two):
                assert openbell(home, "verify", "--adopt")[0] == 1, "the missing entries are shown once more"
            assert openbell(one, "account", "add", "e")[0] == 0
            wait_for(lambda: {shown(first), shown(second)} == {"working", "standing by"}, "both go on")


def server_ask(url: str, statement: str) -> None:
    """Run a statement in one of the server's databases."""
    import asyncio

    import asyncpg  # type: ignore[import-untyped]

    async def work() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(work())
