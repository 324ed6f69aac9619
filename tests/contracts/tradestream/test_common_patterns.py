"""What all six servers share: their sources, pages, metadata, errors and caches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.rows import row, shown_by
from tests.contracts.tradestream.agent import Agent
from tests.contracts.tradestream.calls import BTC, CALLS, LISTS, SERVERS, decision, default_of, spec
from tests.contracts.tradestream.conftest import Desk
from tests.gateway.services import Service
from tests.servers.desks import fresh_database
from tests.stalling import StallingProxy
from tests.stores.records.postgres_server import PostgresServer
from tests.waiting import wait_for

# Servers and their sources


@row("Server names strategy-mcp, market-data-mcp, portfolio-mcp, backtest-mcp, decisions-mcp, strategy-db-mcp")
def test_servers_have_the_contracts_names_and_tools(servers: dict[str, Agent]) -> None:
    assert {server: agent.name for server, agent in servers.items()} == {name: f"{name}-mcp" for name in SERVERS}
    for agent in servers.values():
        assert list(agent.tools) == list(agent.contract)


@row("PostgreSQL for strategy, portfolio, decisions, strategy-db")
def test_records_are_read_from_postgresql(servers: dict[str, Agent]) -> None:
    for tool, (server, arguments) in CALLS.items():
        if server in {"strategy", "portfolio", "decisions", "strategy-db"} and tool != "submit_new_spec":
            assert servers[server].metadata(tool, **arguments)["source"] == "postgresql", tool


@row("InfluxDB for market-data")
def test_bars_are_read_from_influxdb(market_data: Agent) -> None:
    for tool in market_data.contract:
        assert market_data.metadata(tool, symbol=BTC)["source"] == "influxdb"


@row("gRPC Backtester for run_backtest")
def test_a_backtest_at_the_grpc_service_says_so_and_has_the_same_figures(research: Desk, backtest: Agent) -> None:
    server, arguments = CALLS["run_backtest"]
    here = backtest.answer("run_backtest", **arguments)
    with (
        Service(research.home, workers=1) as service,
        research.agent(server, BACKTESTER=service.address) as remote,
    ):
        found = remote.result("run_backtest", **arguments)
    there = json.loads(found["content"][0]["text"])
    assert there["data"] == here["data"]
    assert (here["_metadata"]["source"], there["_metadata"]["source"]) == ("parquet", "grpc")
    assert "parquet" in json.dumps(found["_meta"]["openbell/truth"]), "where the bars came from"


# Pages


@row("Pagination object offset, limit, total, has_more on every list")
@pytest.mark.parametrize("tool", LISTS)
def test_a_list_has_a_pagination_object(servers: dict[str, Agent], tool: str) -> None:
    server, arguments = CALLS[tool]
    page = servers[server].data(tool, **arguments, limit=2, offset=1)["pagination"]
    assert list(page) == ["offset", "limit", "total", "has_more"]
    assert (page["offset"], page["limit"]) == (1, 2)
    schema = servers[server].contract[tool]["parameters"]["properties"]
    default = servers[server].data(tool, **arguments)["pagination"]
    assert (default["offset"], default["limit"]) == (schema["offset"]["default"], schema["limit"]["default"])


@row("limit capped per endpoint")
@pytest.mark.parametrize("tool", LISTS)
def test_a_limit_over_the_maximum_is_refused(servers: dict[str, Agent], tool: str) -> None:
    server, arguments = CALLS[tool]
    most = servers[server].contract[tool]["parameters"]["properties"]["limit"]["maximum"]
    assert servers[server].data(tool, **arguments, limit=most)["pagination"]["limit"] == most
    found = servers[server].error(tool, **arguments, limit=most + 1)
    assert found["code"] == "INVALID_PARAMETER"
    assert str(most) in found["message"].replace(",", ""), "it says how many are possible"


@row("has_more right at the end, total always")
@pytest.mark.parametrize("tool", LISTS)
def test_pages_end_with_the_total(servers: dict[str, Agent], tool: str) -> None:
    server, arguments = CALLS[tool]
    if tool == "get_candles":
        arguments = {**arguments, "timeframe": "1d"}
    if tool == "get_recent_decisions":
        for number in range(3):
            servers[server].data("save_decision", **decision(symbol="PG", reasoning=str(number)))
        arguments = {"symbol": "PG"}
    total = servers[server].data(tool, **arguments)["pagination"]["total"]
    assert total
    for offset in {0, total - 2, total - 1, total, total + 5} - {-1}:
        found = servers[server].data(tool, **arguments, limit=1, offset=offset)
        assert found["pagination"] == {"offset": offset, "limit": 1, "total": total, "has_more": offset + 1 < total}
        assert len(found["items"]) == (offset < total)


# Results and errors


@row("{data, _metadata{latency_ms, cached, cache_ttl_remaining, source}} on every result")
@pytest.mark.parametrize("tool", CALLS)
def test_every_result_has_data_and_metadata(servers: dict[str, Agent], tool: str) -> None:
    server, arguments = CALLS[tool]
    found = servers[server].answer(tool, **arguments)
    assert set(found) == {"data", "_metadata"}
    assert set(found["_metadata"]) == {"latency_ms", "cached", "cache_ttl_remaining", "source"}
    assert found["_metadata"]["latency_ms"] > 0
    assert (found["_metadata"]["cache_ttl_remaining"] is None) is not found["_metadata"]["cached"]
    assert found["_metadata"]["source"] in {"postgresql", "influxdb", "parquet"}


@row("{error{code,message,details}, _metadata{latency_ms}} on every error")
@pytest.mark.parametrize("tool", CALLS)
def test_every_error_has_code_message_details_and_latency(servers: dict[str, Agent], tool: str) -> None:
    server, arguments = CALLS[tool]
    found = servers[server].refusal(tool, **arguments, nonsense=1)
    assert set(found) == {"error", "_metadata"}
    assert set(found["error"]) == {"code", "message", "details"}
    assert found["error"]["code"] == "INVALID_PARAMETER"
    assert "nonsense" in found["error"]["message"]
    assert isinstance(found["error"]["details"], dict)
    assert list(found["_metadata"]) == ["latency_ms"]
    assert found["_metadata"]["latency_ms"] > 0


@row("{error{code,message,details}, _metadata{latency_ms}} on every error")
@pytest.mark.parametrize(
    ("tool", "wrong"),
    [
        ("get_top_strategies", {"metric": "calmar"}),
        ("get_candles", {"timeframe": "2h"}),
        ("get_volatility", {"timeframe": "1m"}),
        ("validate_trade", {"side": "HOLD"}),
        ("get_historical_performance", {"period": "2y"}),
        ("get_recent_decisions", {"action": "LONG"}),
        ("save_decision", {"action": "LONG"}),
        ("get_top_specs", {"source": "MINE"}),
        ("get_implementations", {"status": "BEST"}),
    ],
)
def test_the_details_of_a_wrong_choice_have_it_and_what_is_accepted(
    servers: dict[str, Agent], tool: str, wrong: dict[str, str]
) -> None:
    server, arguments = CALLS[tool]
    ((name, _),) = wrong.items()
    accepted = servers[server].contract[tool]["parameters"]["properties"][name].get("enum")
    found = servers[server].error(tool, **{**arguments, **wrong})["details"]
    assert {key: found[key] for key in wrong} == wrong
    assert found["accepted"] == (accepted or ["BUY", "SELL", "HOLD"])


@row("Structured errors reach the client")
@pytest.mark.parametrize("tool", CALLS)
def test_an_error_is_in_the_text_alone(servers: dict[str, Agent], tool: str) -> None:
    """Official clients compare structuredContent with outputSchema, and raise an error of their own instead of ours."""
    server, arguments = CALLS[tool]
    found = servers[server].result(tool, **arguments, nonsense=1)
    assert found["isError"] is True
    assert "structuredContent" not in found
    assert json.loads(found["content"][0]["text"])["error"]["code"] == "INVALID_PARAMETER"


@row("Standard code DATABASE_ERROR")
def test_every_server_has_database_error(fallen: dict[str, Agent]) -> None:
    calls = {
        "strategy": ("get_top_strategies", {"symbol": "AAPL"}),
        "market-data": ("get_current_price", {"symbol": "AAPL"}),
        "portfolio": ("get_balance", {}),
        "backtest": ("get_historical_performance", {"strategy_id": "MACD_CROSSOVER", "symbol": "AAPL"}),
        "decisions": ("save_decision", decision()),
        "strategy-db": ("submit_new_spec", spec("NOT_KEPT")),
    }
    for server, (tool, arguments) in calls.items():
        assert fallen[server].code(tool, **arguments) == "DATABASE_ERROR", server


shown_by(
    "Standard code GRPC_ERROR",
    "contracts/tradestream/test_backtest.py::test_a_backtest_without_its_service_is_grpc_error",
)


@row("Standard code TIMEOUT")
def test_a_database_that_does_not_answer_is_timeout(postgres: PostgresServer, tmp_path: Path) -> None:
    with StallingProxy(postgres.port) as proxy:
        url = fresh_database(postgres).replace(f":{postgres.port}/", f":{proxy.port}/")
        with Agent(tmp_path, "decisions", DATABASE_URL=url, TIMEOUT="0.5") as agent:
            wait_for(lambda: not agent.result("get_recent_decisions", force_refresh=True)["isError"], "the database")
            proxy.stall()
            found = agent.error("get_recent_decisions", force_refresh=True)
            assert found["code"] == "TIMEOUT"
            proxy.resume()


@row("Standard code INVALID_PARAMETER")
def test_other_bad_arguments_are_invalid_parameter(servers: dict[str, Agent]) -> None:
    bad: list[tuple[str, dict[str, Any]]] = [
        ("get_top_strategies", {"symbol": BTC, "offset": -1}),
        ("get_candles", {"symbol": BTC, "limit": "10"}),
        ("get_candles", {}),
        ("validate_trade", {"symbol": BTC, "side": "BUY", "size": "1"}),
        ("run_backtest", {"strategy_id": 7, "symbol": BTC}),
        ("save_decision", decision(confidence="0.5")),
        ("get_top_specs", {"force_refresh": "yes"}),
    ]
    for tool, arguments in bad:
        assert servers[CALLS[tool][0]].code(tool, **arguments) == "INVALID_PARAMETER", (tool, arguments)


@row("Standard code NOT_FOUND")
def test_what_has_no_code_of_its_own_is_not_found(market_data: Agent) -> None:
    assert market_data.code("get_volatility", symbol="ZZZZ") == "NOT_FOUND"


@row("Standard code UNAUTHORIZED")
def test_what_a_reader_may_not_write_is_unauthorized(journal: Desk) -> None:
    with Agent(journal.home, "decisions", "--read-only", **journal.settings) as reader:
        assert reader.code("save_decision", **decision()) == "UNAUTHORIZED"


# Caches

TTLS = {
    "get_top_strategies": ("cache_strategies", 30),
    "get_strategy_signal": ("cache_signal", 10),
    "get_strategy_consensus": ("cache_consensus", 30),
    "get_current_price": ("cache_price", 5),
    "get_candles": ("cache_candles", 60),
    "get_volatility": ("cache_volatility", 30),
    "get_recent_decisions": ("cache_decisions", 30),
    "get_top_specs": ("cache_specs", 60),
    "get_implementations": ("cache_implementations", 30),
    "get_historical_performance": ("cache_performance", 300),
}
"""The contract's table, and the setting of each time."""


@row("TTL configurable")
def test_cache_times_are_settings(research: Desk, strategy: Agent, journal: Desk, few_bars: Desk) -> None:
    assert {tool: default_of(setting) for tool, (setting, _) in TTLS.items()} == {
        tool: seconds for tool, (_, seconds) in TTLS.items()
    }
    desks = dict.fromkeys(("strategy", "backtest", "strategy-db"), research)
    desks |= {"market-data": few_bars, "decisions": journal}
    lasting = {setting.upper(): "900" for setting, _ in TTLS.values()}
    for server, desk in desks.items():
        clock = {"AS_OF": "2025-09-19T16:51:00Z"} if server == "market-data" else {}
        with desk.agent(server, **lasting, **clock) as agent:
            for tool in (tool for tool in TTLS if CALLS[tool][0] == server and tool != "get_volatility"):
                arguments = {**CALLS[tool][1], **({"symbol": "AAPL"} if clock else {})}
                agent.data(tool, **arguments)
                assert 300 < agent.metadata(tool, **arguments)["cache_ttl_remaining"] <= 900, tool
    with research.agent("market-data", CACHE_VOLATILITY="900") as agent:
        for cached in (False, True):
            assert agent.metadata("get_volatility", symbol=BTC, timeframe="1d")["cached"] is cached
        assert 300 < agent.metadata("get_volatility", symbol=BTC, timeframe="1d")["cache_ttl_remaining"] <= 900
    with journal.agent("decisions", CACHE_DECISIONS="0") as agent:
        assert [agent.metadata("get_recent_decisions")["cached"] for _ in range(2)] == [False, False]
    with journal.agent("decisions", CACHE_DECISIONS="0.2") as agent:
        agent.data("get_recent_decisions")
        wait_for(lambda: agent.metadata("get_recent_decisions")["cached"], "a cached result")
        wait_for(lambda: not agent.metadata("get_recent_decisions")["cached"], "the end of its time")
