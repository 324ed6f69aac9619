"""How strategies are judged: the same way for everyone who asks, once for each state of the bars, apart for other costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.client import run
from tests.servers.desks import Bench, awaited, bench_as_found
from tests.servers.reverting_market import FOUND, days_file

BTC = "BTC/USD"
Rows = list[str]


def imported(home: Path, change: Callable[[Rows], Rows] = lambda rows: rows) -> None:
    """Import the days of the market with an edge, with their rows changed."""
    path = days_file(home.parent)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *change(rows), ""]))
    done = run(home, "import", str(path), "--symbol", BTC, FEED="none")
    assert done.returncode == 0, done.stderr


async def ranked(desk: Bench) -> dict[str, dict[str, Any]]:
    """The ranking of the symbol, by id."""
    found = await desk.ask("strategy", "get_top_strategies", symbol=BTC, limit=100, force_refresh=True)
    return {each["strategy_id"]: each for each in found["items"]}


async def listed(desk: Bench, spec: str) -> dict[str, dict[str, Any]]:
    """All implementations of a spec, by id."""
    found = await desk.ask("strategy-db", "get_implementations", spec_id=spec, status="ALL", force_refresh=True)
    return {each["impl_id"]: each for each in found["items"]}


# Costs


@awaited
async def test_processes_with_other_costs_leave_each_others_strategies_alone(
    tmp_path: Path, quick_search: None
) -> None:
    imported(tmp_path / "home")
    first: dict[str, Any] = {}
    entries = []
    for fee in ("0.001", "0.01", "0.001", "0.01"):
        async with bench_as_found(tmp_path / "home", FOUND, SCENARIO="s", FEED="none", PAPER_FEE=fee) as desk:
            found = await ranked(desk), await listed(desk, "SMA_RSI")
            assert found == first.setdefault(fee, found), "the same question has the same answer"
            assert {each["status"] for each in found[1].values()} <= {"CANDIDATE", "VALIDATED"}
            entries.append(await desk.entries())
    assert not set(first["0.001"][0]) & set(first["0.01"][0])
    assert entries[1:] == [entries[1]] * 3, "nothing is recorded twice"
    assert run(tmp_path / "home", "verify", "--scenario", "s", FEED="none").returncode == 0
