"""What one principal's calls show about another's, how much one can store, and what a token for reading alone can."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openbell.protocol.session import Scope
from openbell.servers import NAMES, load
from tests.gateway.streamable.gateways import Inside, Up, message
from tests.prefork import STRATEGIES
from tests.servers.every_tool import SAMPLES
from tests.waiting import wait_for

PEOPLE = {
    **{name: (name, "read,write,trade") for name in ("ann", "ben", "cleo", "dora", "fred", "gina", "hugo", "ida")},
    "reader": ("rita", "read"),
    "owner": ("rita", "read,write,trade"),
    "keeper": ("kim", "read,admin"),
}
"""Subject and scopes of each token: no test uses the principals of another, and `owner` sees what `reader` has stored."""
DECISION = {"symbol": "AAPL", "action": "BUY", "confidence": 0.5, "reasoning": "because"}
CHART = {"symbol": "NASDAQ:AAPL", "interval": "1D", "width": 400, "height": 300}
LARGE = {**CHART, "width": 2048, "height": 1920}
SYMBOLS = ("AAPL", "MSFT", "NVDA", "AMZN", "TSLA")
STORED = 2
"""The quotas of `gateway`."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """A desk on which each principal may keep two of everything."""
    kinds = ("PICTURES", "DECISIONS", "SPECS", "ALERTS", "SUBSCRIPTIONS")
    quotas: dict[str, Any] = {f"QUOTA_{kind}": str(STORED) for kind in kinds}
    with Inside(tmp_path_factory.mktemp("quotas"), PEOPLE, CHART_SIGNALS_HTTP="1", TIMEOUT="30", **quotas) as made:
        yield made


@dataclass(frozen=True)
class Kind:
    """What is stored by a tool, and how a refusal for lack of room is told from others."""

    server: str
    tool: str
    arguments: Callable[[int], dict[str, Any]]
    """Different ones for each call."""
    code: str | int | None
    text: str


def spec_named(number: int) -> dict[str, Any]:
    return {**SAMPLES["strategy-db"]["submit_new_spec"][0], "name": f"MANY_{number}"}


def refusal(kind: str, quota: str) -> str:
    return f"you have {STORED} {kind}, and the most is {STORED} (OPENBELL_QUOTA_{quota})"


CONDITIONS = [{"type": "rsi_oversold"}]
KINDS = {
    "pictures": Kind(
        "chart-image",
        "generate_chart_image",
        lambda number: {"config": {**CHART, "width": 400 + number}, "storage": True},
        None,
        refusal("stored pictures", "PICTURES"),
    ),
    "decisions": Kind(
        "decisions",
        "save_decision",
        lambda number: {**DECISION, "reasoning": f"because of {number}"},
        "UNAUTHORIZED",
        refusal("decisions", "DECISIONS"),
    ),
    "specs": Kind("strategy-db", "submit_new_spec", spec_named, "UNAUTHORIZED", refusal("specs", "SPECS")),
    "alerts": Kind(
        "chartgen",
        "set_alert",
        lambda number: {"symbol": SYMBOLS[number], "condition": {"price_above": 9_000_000 + number}},
        None,
        refusal("active alerts", "ALERTS"),
    ),
    "subscriptions": Kind(
        "chart-signals",
        "subscribe_alerts",
        lambda number: {"symbol": SYMBOLS[number], "timeframe": "1min", "conditions": CONDITIONS},
        -32602,
        refusal("open subscriptions", "SUBSCRIPTIONS"),
    ),
}


def path_of(server: str) -> str:
    return "/mcp" if server == "chartgen" else f"/{server}/mcp"


def called(gateway: Inside | Up, who: str, server: str, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any, str]:
    """True if a tool succeeds, and the code and the text of its error; a JSON-RPC error is one too."""
    body = message("tools/call", {"name": tool, "arguments": arguments})
    answer = gateway.post(body, who, path_of(server))
    assert answer.status == 200, (answer.status, answer.body)
    if "error" in answer.json:
        return False, answer.json["error"]["code"], answer.json["error"]["message"]
    result = answer.json["result"]
    text = result["content"][0]["text"]
    if not result["isError"]:
        return True, None, text
    error = json.loads(text)["error"] if text.startswith("{") else text
    return (False, error["code"], error["message"]) if isinstance(error, dict) else (False, None, error)


# Quotas


@pytest.mark.parametrize(("name", "who", "other"), [(name, "ann", "ben") for name in KINDS])
def test_attack_storing_beyond_the_quota_is_refused_and_others_store_theirs(
    gateway: Inside, name: str, who: str, other: str
) -> None:
    kind = KINDS[name]

    def store(who: str, number: int) -> tuple[bool, Any, str]:
        return called(gateway, who, kind.server, kind.tool, kind.arguments(number))

    for number in range(STORED):
        assert store(who, number)[0], name
    stored, code, text = store(who, STORED)
    assert (stored, code) == (False, kind.code)
    assert kind.text in text
    assert store(other, 0)[0], "a quota is of one principal"


@pytest.mark.parametrize("name", KINDS)
def test_attack_storing_at_one_time_ends_at_the_quota(gateway: Inside, name: str) -> None:
    kind = KINDS[name]

    def store(number: int) -> bool:
        return called(gateway, "cleo", kind.server, kind.tool, kind.arguments(number))[0]

    with ThreadPoolExecutor(len(SYMBOLS)) as threads:
        assert sum(threads.map(store, range(len(SYMBOLS)))) == STORED


def test_attack_large_decisions_end_at_the_quota_of_bytes(tmp_path: Path) -> None:
    large = {**DECISION, "tool_calls": ["x" * 250_000]}
    with Inside(tmp_path, PEOPLE, QUOTA_DECISIONS_MB="1") as gateway:
        replies = [called(gateway, "ann", "decisions", "save_decision", large) for _ in range(6)]
        assert [stored for stored, _, _ in replies] == [True] * 4 + [False] * 2
        assert replies[-1][1] == "UNAUTHORIZED"
        assert "megabytes of decisions, and the most is 1 (OPENBELL_QUOTA_DECISIONS_MB)" in replies[-1][2]
        assert called(gateway, "ben", "decisions", "save_decision", large)[0]


def test_attack_large_pictures_end_at_the_quota_of_bytes(tmp_path: Path) -> None:
    """Large enough for some pictures of one principal, but not for many."""
    given = {"config": LARGE, "storage": True}
    with Inside(tmp_path, PEOPLE, QUOTA_PICTURES_MB="1", TIMEOUT="30") as gateway:

        def kept() -> int:
            return sum(file.stat().st_size for file in (tmp_path / "pictures").glob("*/*.png"))

        stored, at_first = 0, 0
        while (reply := called(gateway, "ann", "chart-image", "generate_chart_image", given))[0]:
            stored, at_first = stored + 1, at_first or kept()
            assert kept() <= 2**20
        assert stored == 2**20 // at_first > 1
        assert "megabytes of stored pictures, and the most is 1 (OPENBELL_QUOTA_PICTURES_MB)" in reply[2]
        assert called(gateway, "ben", "chart-image", "generate_chart_image", given)[0]


def test_attack_pages_of_large_decisions_are_read_without_what_they_do_not_show(gateway: Inside) -> None:
    """A page of 100 decisions may rest on 25 MB of tool calls."""
    large = {**DECISION, "tool_calls": ["x" * 250_000]}
    assert called(gateway, "dora", "decisions", "save_decision", large)[0]
    (shown,) = gateway.ask("get_recent_decisions", "dora", "/decisions/mcp")["data"]["items"]
    assert "tool_calls" not in shown
    rows, _ = gateway.run(lambda: gateway.desk.trading.decisions.recent("dora", 100, 0, None, None))
    assert len(json.dumps([dict(row) for row in rows])) < 1_000


# Reading


def test_attack_a_reader_stores_nothing(gateway: Inside) -> None:
    """Neither by the tools that store, nor by those of which some calls do."""
    for server in NAMES:
        for tool in load(server).tools:
            if tool.scope is not Scope.READ:
                body = message("tools/call", {"name": tool.name, "arguments": SAMPLES[server][tool.name][0]})
                answer = gateway.post(body, "reader", path_of(server))
                assert answer.status == 403, (server, tool.name, answer.body)
    for name in ("pictures", "subscriptions"):
        kind = KINDS[name]
        success, _, text = called(gateway, "reader", kind.server, kind.tool, kind.arguments(0))
        assert not success, name
        assert "needs the scope write" in text
    assert called(gateway, "reader", "chart-image", "generate_chart_image", {"config": CHART})[0], "it may draw"
    assert gateway.ask("get_recent_decisions", "owner", "/decisions/mcp")["data"]["items"] == []
    assert gateway.ask("get_top_specs", "owner", "/strategy-db/mcp", source="LLM_GENERATED")["data"]["items"] == []
    assert gateway.ask("list_alerts", "owner")["alerts"] == []
    for kind in KINDS.values():  # all of each quota is free
        for number in range(STORED):
            assert called(gateway, "owner", kind.server, kind.tool, kind.arguments(number))[0], kind.tool


# What others have asked for


def test_attack_what_another_principal_has_asked_is_not_cached_for_this_one(gateway: Inside) -> None:
    given = {"symbol": "AAPL", "timeframe": "1d", "limit": 2}
    found = [
        gateway.ask("get_candles", who, "/market-data/mcp", **given)["_metadata"] for who in ("fred", "gina", "fred")
    ]
    assert [each["cached"] for each in found] == [False, False, True]
    assert found[1]["cache_ttl_remaining"] is None


def test_attack_storage_info_shows_nothing_that_another_principal_has_asked_for(tmp_path: Path) -> None:
    """Neither a symbol, nor its timeframes, nor the size of its bars."""
    (tmp_path / "watchlist.txt").write_text("MSFT\n")

    with Inside(tmp_path, PEOPLE, CHART_SIGNALS_HTTP="1") as gateway:

        def info(who: str) -> dict[str, Any]:
            found: dict[str, Any] = gateway.ask("get_storage_info", who, "/chart-signals/mcp")
            return {name: found.get(name) for name in ("stored_symbols", "series", "total_size_mb", "set_aside")}

        def size(who: str) -> float:
            return float(info(who)["total_size_mb"])

        given: dict[str, Any] = {"symbol": "MSFT", "timeframe": "1d", "limit": 100}
        gateway.ask("get_candles", "hugo", "/market-data/mcp", **given)
        before, all_of_it = info("ida"), size("keeper")
        for symbol, timeframe in (("NVDA", "1d"), ("NVDA", "1m"), ("ETH/USD", "1h")):
            gateway.ask("get_candles", "hugo", "/market-data/mcp", symbol=symbol, timeframe=timeframe, limit=500)
        assert size("keeper") > all_of_it, "the bars were stored"
        assert info("ida") == before
        assert before["stored_symbols"] == {"stocks": ["MSFT"], "crypto": []}
        assert info("keeper")["stored_symbols"] == {"stocks": ["MSFT", "NVDA"], "crypto": ["ETH_USD"]}


def test_attack_implementations_name_no_symbol_that_another_principal_has_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "watchlist.txt").write_text("MSFT\n")
    monkeypatch.setenv(STRATEGIES, "MACD_CROSSOVER,SMA_RSI")

    def symbols(who: str) -> set[str]:
        given = {"spec_id": "SMA_RSI", "status": "ALL", "limit": 100, "force_refresh": True}
        found = up.ask("get_implementations", who, "/strategy-db/mcp", **given)
        return {each["symbol"] for each in found["data"]["items"]}

    def ask(who: str) -> None:
        up.call("get_top_strategies", who, "/strategy/mcp", symbol="NVDA", limit=1, force_refresh=True)

    with Up(tmp_path) as up:

        def is_found() -> bool:
            ask("alice")
            return "NVDA" in symbols("alice")

        wait_for(is_found, "the search", patience=60)
        assert "NVDA" not in symbols("bob")
        ask("bob")
        assert "NVDA" in symbols("bob"), "what it has asked for itself"
