"""Two homes on one InfluxDB database, and a user of InfluxDB that is no admin. Real servers, real processes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread

import pytest

from openbell.market.errors import LeaseHeld, LeaseLost
from openbell.stores.influx.http import InfluxHttp, NotAllowed
from openbell.stores.influx.leases import Claims
from openbell.stores.leases import Holders
from tests.client import OPENBELL, environment, run
from tests.stores.influx_server import InfluxServer, NotHere
from tests.waiting import PATIENCE, wait_for

ADMIN, USER = "admin:all-of-it", "desk:its-own-only"


@pytest.fixture(scope="module")
def server() -> Iterator[InfluxServer]:
    """A server on which the desk's user has all rights on one database, and no others."""
    try:
        server = InfluxServer(admin=ADMIN)
    except NotHere as error:
        pytest.skip(f"NOT TESTED: {error}")
    user, _, password = USER.partition(":")
    server.query(f"CREATE USER {user} WITH PASSWORD '{password}'")
    yield server
    server.close()


def granted(server: InfluxServer, name: str) -> str:
    """A new database that the desk's user may use."""
    server.query(f'CREATE DATABASE "{name}"')
    server.query(f'GRANT ALL ON "{name}" TO {USER.partition(":")[0]}')
    return name


class Homes:
    """Homes that claim one database, each with files of its own, and claims that count for `seconds`."""

    def __init__(self, server: InfluxServer, database: str, folder: Path, seconds: float = 15.0) -> None:
        self._http = InfluxHttp(server.url, database, USER)
        self._folder = folder
        self._seconds = seconds

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def claims(self, name: str) -> Claims:
        """The claims of one home."""
        return Claims(self._http, Holders(self._folder / name), self._seconds)


# Claims


def test_one_of_many_homes_that_begin_at_once_gets_the_database(server: InfluxServer, tmp_path: Path) -> None:
    with Homes(server, granted(server, "race"), tmp_path) as homes, ThreadPoolExecutor(6) as pool:
        claims = [homes.claims(f"home{number}") for number in range(6)]
        for round_number in range(8):
            start = Barrier(6)

            def claim(number: int) -> str | None:
                holder = f"collector@{number}"
                start.wait(PATIENCE)  # noqa: B023 - used in this round only
                try:
                    claims[number].acquire("collector", holder)
                except LeaseHeld:
                    return None
                return holder

            got = [holder for holder in pool.map(claim, range(6)) if holder]
            assert len(got) <= 1, f"round {round_number}: {got}"
            for number in range(6):
                claims[number].release(f"collector@{number}")
        claims[0].acquire("collector", "collector@0")
        assert claims[1].other() == "collector@0"


def test_a_claim_ends_by_release_or_by_time_and_its_process_learns_of_it(server: InfluxServer, tmp_path: Path) -> None:
    with Homes(server, granted(server, "time"), tmp_path, seconds=1.5) as homes:
        one, two = homes.claims("one"), homes.claims("two")
        one.acquire("collector", "first, of one")
        with pytest.raises(LeaseHeld, match="first, of one"):
            two.acquire("collector", "second")
        one.release("first, of one")
        two.acquire("collector", "second")
        wait_for(lambda: one.other() is None, "the end of a claim that is not renewed")
        one.acquire("collector", "first, of one")
        with pytest.raises(LeaseLost, match="first, of one"):
            two.renew("collector", "second")
        one.renew("collector", "first, of one")
        assert two.other() == "first, of one"


def test_a_claim_that_lapsed_and_that_nobody_took_is_renewed(server: InfluxServer, tmp_path: Path) -> None:
    with Homes(server, granted(server, "lapsed"), tmp_path, seconds=1.0) as homes:
        one, two = homes.claims("one"), homes.claims("two")
        one.acquire("collector", "first")
        wait_for(lambda: two.other() is None, "the end of the claim")
        one.renew("collector", "first")
        assert two.other() == "first"


# The command line


class Collecting:
    """`openbell collect` of one home. `lines` has what it has printed."""

    def __init__(self, home: Path, server: InfluxServer, database: str) -> None:
        home.mkdir(exist_ok=True)
        (home / "watchlist.txt").write_text("BTC/USD\n")
        settings = {"INFLUX_URL": server.url, "INFLUX_DATABASE": database, "INFLUX_TOKEN": USER}
        self.process = subprocess.Popen(
            [*OPENBELL, "collect"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(home, FEED="sim", **settings),
        )
        self.lines: list[str] = []
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def has_said(self, text: str) -> bool:
        return any(text in line for line in [*self.lines])

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stdout
        self.process.stdout.close()


def test_of_two_homes_one_collects_and_the_other_takes_over(server: InfluxServer, tmp_path: Path) -> None:
    name = granted(server, "bars_simulated_7").removesuffix("_simulated_7")
    first = Collecting(tmp_path / "one", server, name)
    ended = [first]
    try:
        http = InfluxHttp(server.url, f"{name}_simulated_7", USER)
        claims = Claims(http, Holders(None))
        wait_for(lambda: claims.other() is not None, "the first's claim")
        second = Collecting(tmp_path / "two", server, name)
        ended.append(second)
        wait_for(lambda: second.has_said("already running as"), "the second's refusal")
        holder = claims.other()
        doctor = run(
            tmp_path / "two", "doctor", INFLUX_URL=server.url, INFLUX_DATABASE=name, INFLUX_TOKEN=USER, FEED="sim"
        )
        assert f"collector running as {holder}" in doctor.stdout
        assert "its size is not counted: only admins of InfluxDB may read it" in doctor.stdout
        assert doctor.returncode == 0, doctor.stdout
        ended.remove(first)
        first.end()
        wait_for(lambda: claims.other() not in {None, holder}, "the second's claim")
        http.close()
    finally:
        for each in ended:
            each.end()


def test_without_rights_of_an_admin_the_storage_is_described(server: InfluxServer, tmp_path: Path) -> None:
    name = granted(server, "alone_simulated_7").removesuffix("_simulated_7")
    settings = {"INFLUX_URL": server.url, "INFLUX_DATABASE": name, "INFLUX_TOKEN": USER, "FEED": "sim"}
    asked = run(tmp_path, "call", "chart-signals", "get_storage_info", "{}", **settings)
    assert asked.returncode == 0, asked.stdout
    assert json.loads(asked.stdout)["total_size_mb"] > 0


def test_a_database_that_the_user_may_not_create_is_named_with_the_statement(server: InfluxServer) -> None:
    http = InfluxHttp(server.url, "missing", USER)
    with pytest.raises(NotAllowed, match='let an admin run CREATE DATABASE "missing"'):
        http.write_now("x y=1")
    http.close()
