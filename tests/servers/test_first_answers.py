"""The first answer of a process that starts from nothing: what is ready, and a note, within 1.5 s."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from openbell.desk.research.strategies.specs import canonical_specs
from tests.client import OPENBELL, Client
from tests.machine_load import slowdown
from tests.servers.desks import fresh_database
from tests.waiting import wait_for

LONGEST = 1.5
"""Seconds, if nothing else uses the machine."""
STARTS = 3
"""Processes of which one must be fast enough: others may use the machine just then."""
BTC = "BTC/USD"
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "get_top_strategies": ("strategy", {"symbol": BTC}),
    "get_strategy_signal": ("strategy", {"strategy_id": "MACD_CROSSOVER", "symbol": BTC}),
    "get_strategy_consensus": ("strategy", {"symbol": BTC}),
    "get_top_specs": ("strategy-db", {}),
}


@pytest.fixture(autouse=True)
def _from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes load everything themselves, search in the background, and know every strategy."""
    monkeypatch.setenv("PREFORK", "0")
    assert len(canonical_specs()) == 60


def process(home: Path, server: str, database: str = "") -> Client:
    """A server with the default feed, which is the simulator."""
    return Client(home, command=[*OPENBELL, "mcp", server], **({"DATABASE_URL": database} if database else {}))


def body_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The object of a result or an error; both are simulated prices'."""
    assert answer["_meta"]["openbell/truth"]["feed"] == "sim"
    found: dict[str, Any] = json.loads(answer["content"][0]["text"])
    return found


def first_answer(home: Path, tool: str, database: str = "") -> tuple[float, dict[str, Any]]:
    """The seconds of the first call of a new process, and what it answers."""
    server, arguments = ASKED[tool]
    with process(home, server, database) as client:
        client.initialize()
        began = time.monotonic()
        answer = client.call(tool, arguments)["result"]
        return time.monotonic() - began, body_of(answer)


def note_of(body: dict[str, Any]) -> str:
    return str(body["error"]["message"] if "error" in body else body["data"].get("note"))


@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
@pytest.mark.parametrize("tool", ASKED)
def test_the_first_call_about_a_symbol_that_was_never_searched(
    tmp_path: Path, request: pytest.FixtureRequest, tool: str, store: str
) -> None:
    tried = []
    for number in range(STARTS):
        database = fresh_database(request.getfixturevalue("postgres")) if store == "postgresql" else ""
        load = slowdown()
        seconds, body = first_answer(tmp_path / str(number), tool, database)
        assert "still being searched" in note_of(body), body
        assert "ask again" in note_of(body)
        if tool == "get_top_specs":
            assert body["data"]["pagination"]["total"] == 60, "specs are listed before they were tried"
        tried.append(f"{seconds:.2f} s; the machine is {load:.1f} times slower than alone")
        if seconds <= LONGEST * load:
            return
    raise AssertionError(tried)


def test_the_first_ranking_of_specs_that_were_tried(tmp_path: Path, database: str) -> None:
    """A new process has to compute the figures of every implementation again: it shows those that are ready."""
    with process(tmp_path, "strategy", database) as client:
        client.initialize()
        arguments = ASKED["get_top_strategies"][1]
        wait_for(
            lambda: (
                "data" in (body := body_of(client.call("get_top_strategies", arguments)["result"]))
                and "searched" not in note_of(body)
            ),
            "the search",
        )
    tried = []
    for _ in range(STARTS):
        load = slowdown()
        seconds, body = first_answer(tmp_path, "get_top_specs", database)
        made = [each for each in body["data"]["items"] if each["implementations_count"]]
        ready = all(each["avg_sharpe"] is not None for each in made)
        assert made and (ready or "ask again" in note_of(body)), body
        tried.append(f"{seconds:.2f} s; the machine is {load:.1f} times slower than alone")
        if seconds <= LONGEST * load:
            return
    raise AssertionError(tried)
