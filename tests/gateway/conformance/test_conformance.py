"""The official conformance suite passes against the gateway's transport, in every revision that it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.client import PATIENCE
from tests.gateway.conformance import suite
from tests.gateway.conformance.fixtures import ERROR_TEXT, SIMPLE_TEXT
from tests.gateway.processes import served
from tests.npm import programs

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    try:
        programs.folder("conformance")
    except programs.NotHere as missing:
        pytest.skip(f"NOT TESTED: {missing}")


@pytest.mark.parametrize("revision", suite.REVISIONS)
def test_every_scenario_passes_and_is_in_the_docs(tmp_path: Path, revision: str) -> None:
    checks = suite.run(revision, tmp_path)
    assert [check for check in checks if check.status != "SUCCESS" and check.reason is None] == []
    assert {check.scenario for check in checks} == suite.applicable(revision)
    assert suite.columns_of(suite.PAGE.read_text())[revision] == suite.column(checks)


def test_the_page_is_what_its_table_makes_of_it() -> None:
    text = suite.PAGE.read_text()
    assert suite.page(suite.columns_of(text)) == text


def test_every_reason_has_a_check() -> None:
    cells = suite.columns_of(suite.PAGE.read_text())
    for scenario, _, _ in suite.NOT_PASSED:
        assert any(", " in column.get(scenario, "") for column in cells.values())


# The suite accepts any text for these tools, also the error of a server that does not have them.


def call(port: int, version: str, tool: str, **meta: Any) -> tuple[str, list[dict[str, Any]]]:
    """The content type of a response and its messages."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": version}
    params: dict[str, Any] = {"name": tool, "arguments": {}}
    if version == MODERN:
        headers |= {"mcp-method": "tools/call", "mcp-name": tool}
        able: dict[str, Any] = {"elicitation": {}}
        given = {f"{META}protocolVersion": version, f"{META}clientCapabilities": able}
        params["_meta"] = given | {f"{META}{key}": value for key, value in meta.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with httpx2.Client(trust_env=False, timeout=PATIENCE) as client:
        response = client.post(f"http://127.0.0.1:{port}/mcp", json=body, headers=headers)
    kind = response.headers["content-type"]
    if kind == "application/json":
        return kind, [response.json()]
    lines = response.text.splitlines()
    return kind, [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data: {")]


@pytest.fixture
def port(tmp_path: Path) -> Any:
    with served("tests.gateway.conformance.everything", tmp_path) as found:
        yield found


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_the_fixed_texts_come_from_the_tools(port: int, version: str) -> None:
    for tool, text, is_error in (("test_simple_text", SIMPLE_TEXT, False), ("test_error_handling", ERROR_TEXT, True)):
        kind, (message,) = call(port, version, tool)
        assert kind == "application/json"
        assert message["result"]["content"] == [{"type": "text", "text": text}]
        assert message["result"]["isError"] is is_error
    assert call(port, version, "no_such_tool")[1][0]["error"]["code"] == -32602


def test_log_messages_are_sent_only_to_requests_that_want_them(port: int) -> None:
    kind, messages = call(port, MODERN, "test_logging_tool", logLevel="info")
    assert kind.startswith("text/event-stream")
    assert [message.get("method") for message in messages] == ["notifications/message"] * 3 + [None]
    for wanted in ({}, {"logLevel": "error"}):
        kind, (message,) = call(port, MODERN, "test_logging_tool", **wanted)
        assert kind == "application/json"
        assert message["result"]["isError"] is False


def test_input_is_required_by_a_result_and_not_by_a_request(port: int) -> None:
    _, (message,) = call(port, MODERN, "test_streaming_elicitation")
    assert message["result"]["resultType"] == "input_required"
    assert message["result"]["inputRequests"]["user_name"]["method"] == "elicitation/create"
