"""The constraints, the acceptance criteria and the files of the contract."""

from __future__ import annotations

import json
import re
from pathlib import Path

import psutil
from jsonschema import Draft202012Validator

from tests.client import OPENBELL, Client
from tests.contracts.rows import ROWS, contract, differs, row, shown_by
from tests.contracts.tradestream.agent import STANDARD_CODES, Agent
from tests.contracts.tradestream.calls import SERVERS

ROOT = Path(__file__).parents[3]
PATTERNS = "contracts/tradestream/test_common_patterns.py"
POOLS = "contracts/tradestream/test_connection_pools.py"


# Constraints


@row("Each server a separate process, stdio")
def test_each_server_is_a_process_of_its_own_on_stdio(servers: dict[str, Agent], tmp_path: Path) -> None:
    assert len({agent.client.process.pid for agent in servers.values()}) == len(SERVERS)
    for server in SERVERS:
        with Agent(tmp_path, server, FEED="none") as agent:
            assert agent.client.request("ping")["result"] == {}
            assert not psutil.Process(agent.client.process.pid).net_connections("inet"), "it listens nowhere"
            assert agent.client.end_input() == []
            assert agent.client.process.wait(30) == 0, "it ends with its input"


shown_by(
    "Constraint: latency metadata, structured errors, caching, pagination, pooling",
    f"{PATTERNS}::test_every_result_has_data_and_metadata",
    f"{PATTERNS}::test_every_error_has_code_message_details_and_latency",
    f"{PATTERNS}::test_cache_times_are_settings",
    f"{PATTERNS}::test_a_list_has_a_pagination_object",
    f"{POOLS}::test_there_are_at_most_ten_connections",
)


# Acceptance


@row("Acceptance: stdio transport")
def test_every_server_speaks_json_rpc_on_its_standard_streams(tmp_path: Path) -> None:
    for server in SERVERS:
        with Client(tmp_path, command=[*OPENBELL, "mcp", server], FEED="none") as client:
            assert client.initialize("2025-06-18")["protocolVersion"] == "2025-06-18"
            answer = client.request("tools/list")
            assert answer["jsonrpc"] == "2.0"
            assert answer["result"]["tools"]


@row("Acceptance: JSON schema definitions")
def test_every_tool_has_valid_json_schemas(servers: dict[str, Agent]) -> None:
    for agent in servers.values():
        for tool in agent.tools.values():
            for name in ("inputSchema", "outputSchema"):
                Draft202012Validator.check_schema(tool[name])
                assert tool[name]["type"] == "object"


shown_by(
    "Acceptance: callable from OpenCode via config",
    "gateway/clients/test_clients.py::test_opencode_connects_to_every_server",
    "cli/test_install.py::test_opencode_keeps_the_form_of_its_file",
)


@row("Acceptance: error handling returns structured errors with documented codes")
def test_the_rows_provoke_every_code_of_the_contract(servers: dict[str, Agent]) -> None:
    for agent in servers.values():
        for name, tool in agent.contract.items():
            for error in tool["errors"]:
                found = [text for text in ROWS["tradestream"] if text.startswith(f"{name}: {error['code']}")]
                assert len(found) == 1, (name, error)
    codes = {each["code"] for agent in servers.values() for tool in agent.contract.values() for each in tool["errors"]}
    assert codes & STANDARD_CODES == {"DATABASE_ERROR", "GRPC_ERROR", "UNAUTHORIZED"}


shown_by(
    "Acceptance: latency metadata / caching / pagination / pooling",
    f"{PATTERNS}::test_every_result_has_data_and_metadata",
    f"{PATTERNS}::test_cache_times_are_settings",
    f"{PATTERNS}::test_pages_end_with_the_total",
    f"{POOLS}::test_two_connections_are_open_before_the_first_call_and_stay",
)
shown_by(
    "Acceptance: unit tests for each tool",
    "servers/test_strategy.py::test_every_declared_error_is_raised",
    "servers/test_market_data.py::test_every_mistake_has_its_code",
    "servers/test_portfolio.py::test_every_mistake_has_its_code",
    "servers/test_decisions.py::test_a_bad_decision_has_its_code_and_is_not_kept",
)
shown_by(
    "Acceptance: integration tests with real databases",
    "servers/test_strategies_end_to_end.py::test_a_spec_becomes_an_order_with_its_ledger_chain",
    "servers/test_market_data.py::test_a_store_that_is_gone_is_a_database_error",
    "servers/test_decisions.py::test_a_server_that_hangs_dies_and_comes_back",
)
differs(
    "File structure services/mcp_servers/…",
    "One package has the servers of five contracts: `src/openbell/servers/` has the tools of each server, "
    "`src/openbell/protocol/` what the page has in `common/` (server, cache, errors, pagination), `src/openbell/stores/` "
    "the pools, `tests/servers/` and `tests/contracts/` the tests, `requirements-run.lock` the requirements. Servers are "
    "started by name, so that no user depends on these paths.",
)


@row("File structure services/mcp_servers/…")
def test_what_takes_the_place_of_the_pages_files_is_there() -> None:
    reason = contract("tradestream").reasons["File structure services/mcp_servers/…"]
    paths = [each for each in re.findall(r"`([^`]+)`", reason) if each != "common/"]
    assert len(paths) > 5
    assert [each for each in paths if not (ROOT / each).exists()] == []


@row("Dockerfile")
def test_the_dockerfile_starts_any_one_server(tmp_path: Path) -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for name, words in steps:
        if name == "COPY" and "--from" not in words:
            for path in [word for word in words.split() if not word.startswith("--")][:-1]:
                assert (ROOT / path).exists(), path
    (entry,) = (json.loads(words) for name, words in steps if name == "ENTRYPOINT")
    assert entry[0].rpartition("/")[2] == "openbell", "what follows are its words"
    for server in SERVERS:
        command = [*OPENBELL, *entry[1:], *(() if "mcp" in entry else ("mcp",)), server]
        with Client(tmp_path, command=command, FEED="none") as client:
            assert client.initialize()["serverInfo"]["name"] == f"{server}-mcp"
