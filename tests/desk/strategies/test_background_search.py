"""The search in the background: it covers the watchlist, one process does it, and a kill loses nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pytest

from openbell.desk.events import supervision
from openbell.desk.events.hub import Listener, WatchlistChanged
from openbell.desk.research.strategies import specs
from openbell.desk.research.strategies.background_search import BackgroundSearch, SearchStatus
from openbell.market.instruments import parse
from openbell.market.series import Series
from openbell.market.timeframes import Timeframe
from openbell.stores.records import strategies as queries
from openbell.stores.records.leases import RecordLeases
from openbell.stores.records.snapshot import View
from openbell.stores.records.strategies import EVERYONE
from openbell.stores.threads import CALLER
from tests.client import OPENBELL, Client, run
from tests.desk.strategies.days import corrected, imported
from tests.prefork import SEARCHES
from tests.servers.desks import Bench, awaited, bench_as_found, data
from tests.servers.reverting_market import BUYS_LOW, FIRST
from tests.waiting import PATIENCE, until, wait_for

T = TypeVar("T")
BTC = "BTC/USD"
SEARCH_PATIENCE = 600.0
"""A search computes for seconds in a process that gives way to everything else on the machine."""


@pytest.fixture(autouse=True)
def _searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of these tests search in the background."""
    monkeypatch.setenv(SEARCHES, "1")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that watches one symbol."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "watchlist.txt").write_text(f"{BTC}\n")
    return tmp_path / "home"


async def searched(seeding: BackgroundSearch) -> None:
    await until(lambda: seeding.status.detail == "all watched series are searched", "the search", SEARCH_PATIENCE)


async def count(desk: Bench) -> int:
    found: int = (await desk.ask("strategy-db", "get_implementations", spec_id="MACD_CROSSOVER", status="ALL"))[
        "pagination"
    ]["total"]
    return found


@awaited
async def test_watched_series_are_searched_and_a_new_spec_after_them(home: Path) -> None:
    async with bench_as_found(home) as desk:
        desk.desk.strategies.start()
        seeding = desk.desk.strategies.seeding
        await searched(seeding)
        assert (seeding.status.done, seeding.status.total) == (2, 2)
        assert await count(desk) == 2
        specs = await desk.ask("strategy-db", "get_top_specs", limit=100)
        assert sum("avg_sharpe" in each for each in specs["items"]) > 40
        spec_id = (await desk.ask("strategy-db", "submit_new_spec", **BUYS_LOW))["spec_id"]

        async def tried() -> int:
            page = await desk.ask(
                "strategy-db", "get_implementations", spec_id=spec_id, status="ALL", force_refresh=True
            )
            total: int = page["pagination"]["total"]
            return total

        async with asyncio.timeout(SEARCH_PATIENCE):
            while await tried() < 2:
                await asyncio.sleep(0.05)


def test_one_process_searches_and_a_killed_one_is_followed(home: Path) -> None:
    """Two servers at once, the one that searches is killed: every series is searched once, and the ledger is whole."""
    command = [*OPENBELL, "mcp", "strategy"]
    settings = {"TIMEOUT": "60", "LOG_LEVEL": "info"}
    with Client(home, command=command, **settings) as first, Client(home, command=command, **settings) as second:
        first.initialize()
        second.initialize()
        # Either may be the one that searches: whichever has taken the lease has a process that computes.
        wait_for(lambda: has_worker(first) or has_worker(second), "a worker")
        searching, other = (first, second) if has_worker(first) else (second, first)
        searching.process.kill()

        def ranking() -> dict[str, Any]:
            # A server answers early with what is ready, and says so; the search goes on behind it.
            found: dict[str, Any] = data(other, "get_top_strategies", symbol=BTC, limit=100, force_refresh=True)
            return found

        wait_for(lambda: ranking()["pagination"]["total"] > 20, "the search", SEARCH_PATIENCE)
        ranked = ranking()
        ids = [each["strategy_id"] for each in ranked["items"]]
        assert len(set(ids)) == len(ids)
    done = run(home, "verify")
    assert done.returncode == 0, done.stdout
    found = run(home, "call", "strategy-db", "get_implementations", json.dumps({"spec_id": "SMA_RSI", "status": "ALL"}))
    page: dict[str, Any] = json.loads(found.stdout)["data"]
    series = [(each["symbol"], each["timeframe"]) for each in page["items"]]
    assert len(set(series)) == len(series)


def has_worker(server: Client) -> bool:
    return bool(psutil.Process(server.process.pid).children())


def alive(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


def test_killed_processes_that_compute_are_replaced(home: Path) -> None:
    """Out of memory, the system kills the processes that compute first: searches and calls go on in new ones."""
    with Client(home, command=[*OPENBELL, "mcp", "strategy"], TIMEOUT="60", LOG_LEVEL="info") as client:
        client.initialize()
        before = data(client, "get_top_strategies", symbol=BTC, limit=100)
        server = psutil.Process(client.process.pid)
        for _ in range(2):
            killed = server.children(recursive=True)
            for each in killed:
                each.kill()
            wait_for(lambda: not any(map(alive, killed)), "their end")  # noqa: B023
            data(client, "get_top_strategies", symbol="ETH/USD", force_refresh=True)
        after = data(client, "get_top_strategies", symbol=BTC, limit=100, force_refresh=True)
        assert {each["strategy_id"] for each in before["items"]} <= {each["strategy_id"] for each in after["items"]}


@awaited
async def test_the_search_goes_on_after_a_failure_that_nobody_expected(
    home: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.01)
    async with bench_as_found(home) as desk:
        strategies = desk.desk.strategies
        ensure, owners, failures = strategies.searching.ensure, queries.owners, ["of all", "of one series"]

        async def ensure_second(*given: Any) -> int:
            if failures == ["of one series"]:
                raise RuntimeError(failures.pop())
            return await ensure(*given)

        def owners_second(view: Any) -> list[str]:
            if failures == ["of all", "of one series"]:
                raise RuntimeError(failures.pop(0))
            return owners(view)

        monkeypatch.setattr(strategies.searching, "ensure", ensure_second)
        monkeypatch.setattr(queries, "owners", owners_second)
        seeding, ended = strategies.seeding, list[SearchStatus]()
        wait_for_change = seeding._next

        async def record_end(changed: Listener) -> Collection[Series] | None:
            # The state itself is replaced at once if the first events of the hub arrive during the search.
            ended.append(replace(seeding.status))
            return await wait_for_change(changed)

        monkeypatch.setattr(seeding, "_next", record_end)
        strategies.start()
        await until(lambda: bool(ended), "the end of the first search", SEARCH_PATIENCE)
        assert "BTC/USD 1d is not searched" in ended[0].detail
        assert (ended[0].done, ended[0].total) == (2, 2), "the other series was searched"
        desk.desk.hub.publish(WatchlistChanged())
        await searched(seeding)


@awaited
async def test_the_lease_is_renewed_during_a_series_that_takes_longer(
    home: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openbell.desk.research.strategies.background_search._LEASE_SECONDS", 0.6)
    async with bench_as_found(home) as desk:
        strategies, records = desk.desk.strategies, desk.desk.trading.records
        ensure, is_enough = strategies.searching.ensure, asyncio.Event()

        async def ensure_slowly(*given: Any) -> int:
            await is_enough.wait()
            return await ensure(*given)

        monkeypatch.setattr(strategies.searching, "ensure", ensure_slowly)
        strategies.start()
        await until(lambda: strategies.seeding.status.searching, "the search")

        def expiry(view: View) -> float:
            name = f"search {strategies.setup.costs}"
            row = RecordLeases(view).get(name)
            return 0.0 if row is None else row.expires

        first = await records.read(expiry)
        async with asyncio.timeout(PATIENCE):
            while await records.read(expiry) <= first + 1.2:  # by then a lease that nobody renews had ended twice
                await asyncio.sleep(0.01)
        assert strategies.seeding.status.done == 0
        is_enough.set()
        await searched(strategies.seeding)


@awaited
async def test_corrected_bars_are_noticed_soon(home: Path, quick_search: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not after ten minutes, as a change that nothing reports."""
    monkeypatch.setattr("openbell.desk.research.strategies.background_search._LOOK_SECONDS", 0.05)
    imported(home, first=FIRST)
    async with bench_as_found(home, FEED="none") as desk:
        strategies = desk.desk.strategies
        strategies.start()
        await searched(strategies.seeding)
        before = await strategies.searching.implementations("local")
        imported(home, corrected, first=FIRST)
        async with asyncio.timeout(PATIENCE):
            while len(now := await strategies.searching.implementations("local")) == len(before):
                await asyncio.sleep(0.01)
        assert [each.generation for each in now] == [1, 1, 2, 2]
        assert {each.status.value for each in now[:2]} == {"RETIRED"}


@awaited
async def test_each_principal_waits_for_its_own_search_of_canonical_specs_or_for_that_of_the_background(
    tmp_path: Path, quick_search: None
) -> None:
    """A search that another principal has begun waits in that one's queue, which may be long."""

    def as_principal(name: str, specs_of: str, on: Series | None = None) -> asyncio.Task[int]:
        context = copy_context()
        context.run(CALLER.set, name)
        return context.run(service.begin, specs_of, on or series)

    imported(tmp_path / "home")
    async with bench_as_found(tmp_path / "home", FEED="none") as desk:
        service, series = desk.desk.strategies.searching, Series(parse(BTC), Timeframe.D1)
        await desk.ask("strategy-db", "submit_new_spec", **BUYS_LOW)
        alice, bob = as_principal("alice", EVERYONE), as_principal("bob", EVERYONE)
        assert alice is not bob and alice is as_principal("alice", EVERYONE)
        assert bob is not as_principal("bob", "bob"), "its own specs are nobody else's"
        progress = await found_before(bob, lambda: service.progress("bob", series))
        assert progress.total == len(specs.canonical_specs())
        assert not service.is_running("carol", series)
        assert await alice == await bob == progress.total
        found = await service.implementations("carol", symbol=BTC)
        assert len({each.spec_id for each in found}) == len(found) > 0, "what was found twice is recorded once"
        assert await service.ensure("carol", series) == 0, "what was found belongs to everybody"
        other = Series(parse(BTC), Timeframe.H1)
        assert as_principal("", EVERYONE, other) is as_principal("carol", EVERYONE, other), "the desk is at work on it"


async def found_before(running: asyncio.Task[int], look: Callable[[], T | None]) -> T:
    """Returns the first value that `look` finds while a task runs."""
    while (found := look()) is None:
        assert not running.done()
        await asyncio.sleep(0)
    return found
