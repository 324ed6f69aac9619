"""Arche, row by row: its manifest, the server on stdio with the simulator, and in front of an API that fails."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.client import OPENBELL, Client
from tests.contracts.rows import row, shown_by
from tests.contracts.wire import ask, assert_readable_error, refused, server, tools
from tests.servers.quotes_server import LIVE, QuotesServer, failure, reply
from tests.servers.test_arche import with_lists_of_types

ROOT = Path(__file__).resolve().parents[2]
CONTRACT: dict[str, Any] = json.loads((ROOT / "mcp/manifest/released/1.0.0.json").read_text())
"""The contract's own file, as the digest below shows."""
DIGEST = "4962653ac9f6935b1bbf9d8e3f70454df05ad0c251e32375288577d8df043629"
METHODS = {method["name"]: method for method in CONTRACT["methods"]}
RESULTS = {
    name: jsonschema_rs.validator_for(method["result_schema"], validate_formats=True)
    for name, method in METHODS.items()
}
AS_OF = "2026-01-07T15:30:20Z"
RANGE: dict[str, Any] = {"tickers": ["BTC/USD"], "from": "2026-01-05", "to": "2026-01-06", "interval": "1d"}
GOOD: dict[str, dict[str, Any]] = {
    "quotes.live": {"tickers": ["AAPL", "btc-usd"]},
    "quotes.historical": RANGE,
    "system.health": {},
    "system.metadata": {},
}


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """The file that programs read."""
    found: dict[str, Any] = json.loads((ROOT / "mcp/manifest/mcp.json").read_text())
    return found


@pytest.fixture(scope="module")
def arche(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The server with the simulator."""
    with server(tmp_path_factory.mktemp("arche"), "arche", AS_OF=AS_OF) as client:
        yield client


@pytest.fixture(scope="module")
def api() -> Iterator[QuotesServer]:
    """A quotes API that answers as a test has planned."""
    with QuotesServer() as made:
        yield made


@pytest.fixture(scope="module")
def remote(api: QuotesServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The server in front of that API."""
    with server(tmp_path_factory.mktemp("remote"), "arche", ARCHE_URL=api.url) as client:
        yield client


def answered(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a call, which the contract's schema allows."""
    found = ask(client, tool, **arguments)
    RESULTS[tool].validate(found)
    return found


def failed(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error object of a call, which the contract's schema allows."""
    found: dict[str, Any] = refused(client, tool, **arguments)
    jsonschema_rs.validate(CONTRACT["errors"]["schema"], found)
    return found


# The file


@row("File mcp/manifest/mcp.json")
def test_the_manifest_is_the_contracts(manifest: dict[str, Any]) -> None:
    assert hashlib.sha256(json.dumps(CONTRACT, sort_keys=True).encode()).hexdigest() == DIGEST
    assert manifest == CONTRACT


@row("name arche-mcp")
def test_the_name_is_also_the_servers(manifest: dict[str, Any], tmp_path: Path) -> None:
    assert manifest["name"] == "arche-mcp"
    with Client(tmp_path, command=[*OPENBELL, "mcp", "arche"], AS_OF=AS_OF) as client:
        assert client.initialize()["serverInfo"]["name"] == "arche-mcp"


@row("version 1.0.0")
def test_the_version(manifest: dict[str, Any]) -> None:
    assert manifest["version"] == "1.0.0"


@row("description text")
def test_the_description(manifest: dict[str, Any]) -> None:
    wanted = "Arche MCP service exposing live and historical quotes over a stable, typed interface."
    assert manifest["description"] == wanted


@row("contact")
def test_the_contact(manifest: dict[str, Any]) -> None:
    wanted = {"name": "Arche API", "url": "https://arche.io/", "email": "support@arche.io"}
    assert manifest["contact"] == wanted


@row("license MIT")
def test_the_license(manifest: dict[str, Any]) -> None:
    assert manifest["license"] == {"name": "MIT"}


@row("four methods in order")
def test_the_methods(manifest: dict[str, Any]) -> None:
    wanted = ["quotes.live", "quotes.historical", "system.health", "system.metadata"]
    assert [method["name"] for method in manifest["methods"]] == wanted


@row("quotes.live schemas", "quotes.historical schemas", "system.health schemas", "system.metadata schemas")
@pytest.mark.parametrize("name", list(METHODS))
def test_the_schemas_of_a_method(manifest: dict[str, Any], name: str) -> None:
    assert next(method for method in manifest["methods"] if method["name"] == name) == METHODS[name]


@row("errors.schema")
def test_the_schema_of_errors(manifest: dict[str, Any]) -> None:
    found = manifest["errors"]["schema"]
    assert found["required"] == ["type", "message", "retryable"]
    assert found["additionalProperties"] is False
    assert found == CONTRACT["errors"]["schema"]


# The server


@row(
    "tools/list of quotes.live equals the manifest",
    "tools/list of quotes.historical equals the manifest",
    "tools/list of system.health equals the manifest",
    "tools/list of system.metadata equals the manifest",
)
@pytest.mark.parametrize("name", list(METHODS))
def test_a_tool_is_what_the_manifest_says(arche: Client, name: str) -> None:
    """Not every client supports lists of types, so that these are sent as anyOf."""
    tool = tools(arche)[name]
    assert tool["inputSchema"] == METHODS[name]["input_schema"]
    assert with_lists_of_types(tool["outputSchema"]) == METHODS[name]["result_schema"]
    assert tool["description"] == METHODS[name]["description"]


@row("additionalProperties:false on every result")
@pytest.mark.parametrize(("name", "arguments"), GOOD.items())
def test_a_result_has_the_manifests_fields_alone(arche: Client, name: str, arguments: dict[str, Any]) -> None:
    assert METHODS[name]["result_schema"]["additionalProperties"] is False
    answered(arche, name, **arguments)


@row("additionalProperties:false on every input")
@pytest.mark.parametrize(("name", "arguments"), GOOD.items())
def test_another_argument_is_refused(arche: Client, name: str, arguments: dict[str, Any]) -> None:
    found = failed(arche, name, **arguments, more=1)
    assert (found["type"], found["retryable"]) == ("VALIDATION_ERROR", False)
    assert "more" in found["message"]


@row("tickers 1-50, case-insensitive, upper-cased")
def test_tickers_are_bounded_and_in_any_case(arche: Client) -> None:
    many = [f"A{number}" for number in range(49)]
    found = answered(arche, "quotes.live", tickers=["aapl", *many])
    assert [quote["ticker"] for quote in found["quotes"]] == ["AAPL"]
    for name, arguments in (("quotes.live", {}), ("quotes.historical", RANGE)):
        for tickers in ([], ["AAPL", *many, "A99"]):
            assert failed(arche, name, **{**arguments, "tickers": tickers})["type"] == "VALIDATION_ERROR"


@row("price a decimal string")
def test_a_price_is_a_decimal_string(arche: Client) -> None:
    for quote in answered(arche, "quotes.live", **GOOD["quotes.live"])["quotes"]:
        assert isinstance(quote["price"], str)
        assert Decimal(quote["price"]) > 0
        assert "e" not in quote["price"].lower()


@row("volume integer|null, currency, as_of date-time")
def test_a_quote_has_its_volume_currency_and_time(arche: Client) -> None:
    found = answered(arche, "quotes.live", tickers=["AAPL", "BTC/USD", "EUR/USD"])["quotes"]
    assert [quote["ticker"] for quote in found] == ["AAPL", "BTC/USD", "EUR/USD"]
    for quote in found:
        assert quote["currency"] == "USD"
        assert type(quote["volume"]) in (int, type(None))
        assert datetime.fromisoformat(quote["as_of"]) <= datetime.fromisoformat(AS_OF)
    assert type(found[0]["volume"]) is int


@row("request_id and source_status 200/206")
def test_a_result_has_the_id_and_status_of_its_request(arche: Client) -> None:
    whole = answered(arche, "quotes.live", tickers=["AAPL"])
    part = answered(arche, "quotes.live", tickers=["AAPL", "NOPE"])
    assert (whole["source_status"], part["source_status"]) == (200, 206)
    assert whole["request_id"] and part["request_id"] and whole["request_id"] != part["request_id"]


@row("request_id and source_status 200/206")
def test_a_second_text_says_that_prices_are_simulated_and_which_tickers_are_unknown(arche: Client) -> None:
    """The schema of results has no field for that."""
    result = arche.call("quotes.live", {"tickers": ["AAPL", "AAPLE"]})["result"]
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    words = result["content"][1]["text"]
    assert "simulated" in words.lower()
    assert "AAPLE" in words and "'AAPL'" in words


@row("from/to dates inclusive")
def test_a_range_has_its_first_and_its_last_day(arche: Client) -> None:
    found = answered(arche, "quotes.historical", **RANGE)
    assert [bar["timestamp"][:10] for bar in found["items"]] == ["2026-01-05", "2026-01-06"]
    one = answered(arche, "quotes.historical", **{**RANGE, "to": "2026-01-05"})
    assert one["items"] == found["items"][:1]


@row("interval only 1d, 1m")
def test_an_interval_is_a_day_or_a_minute(arche: Client) -> None:
    for interval in ("1d", "1m"):
        assert answered(arche, "quotes.historical", **{**RANGE, "interval": interval})["items"]
    for interval in ("1h", "5m", "1M", ""):
        assert failed(arche, "quotes.historical", **{**RANGE, "interval": interval})["type"] == "VALIDATION_ERROR"


MINUTES = {**RANGE, "interval": "1m"}


@row("page default 1, minimum 1")
def test_the_first_page_is_the_default(arche: Client) -> None:
    first = answered(arche, "quotes.historical", **MINUTES)
    assert first["page"] == 1
    assert first["items"] == answered(arche, "quotes.historical", **MINUTES, page=1)["items"]
    assert failed(arche, "quotes.historical", **MINUTES, page=0)["type"] == "VALIDATION_ERROR"


@row("page_size default 50, 1-200")
def test_a_page_has_50_bars_and_at_most_200(arche: Client) -> None:
    found = answered(arche, "quotes.historical", **MINUTES)
    assert (found["page_size"], len(found["items"])) == (50, 50)
    for size in (1, 200):
        assert len(answered(arche, "quotes.historical", **MINUTES, page_size=size)["items"]) == size
    for size in (0, 201):
        assert failed(arche, "quotes.historical", **MINUTES, page_size=size)["type"] == "VALIDATION_ERROR"


@row("bars as strings, timestamp ISO, total over all pages")
def test_bars_are_strings_and_counted_over_all_pages(arche: Client) -> None:
    given = {**MINUTES, "to": "2026-01-05", "page_size": 200}
    pages = [answered(arche, "quotes.historical", **given, page=number) for number in range(1, 9)]
    assert {page["total"] for page in pages} == {1440}
    times = [bar["timestamp"] for page in pages for bar in page["items"]]
    assert len(times) == len(set(times)) == 1440
    assert times == sorted(times)
    bar = pages[0]["items"][0]
    assert datetime.fromisoformat(bar["timestamp"]).tzinfo is not None
    assert {type(bar[name]) for name in ("open", "high", "low", "close", "volume")} == {str}
    assert Decimal(bar["low"]) <= min(Decimal(bar["open"]), Decimal(bar["close"])) <= Decimal(bar["high"])


@row("health ok, degraded, down")
def test_health_has_three_states(arche: Client, remote: Client, api: QuotesServer) -> None:
    assert answered(arche, "system.health")["status"] == "ok"
    for status, code in (("ok", 200), ("degraded", 200), ("down", 503)):
        api.plan = reply(code, {"status": status})
        assert answered(remote, "system.health")["status"] == status
    api.plan = b""
    assert answered(remote, "system.health")["status"] == "down"


@row("metadata: seven fields; mcp_version equals the manifest; limits equal the schemas")
def test_metadata_has_the_versions_and_the_limits(arche: Client, manifest: dict[str, Any]) -> None:
    found = answered(arche, "system.metadata")
    given = METHODS["quotes.historical"]["input_schema"]["properties"]
    assert found == {
        "mcp_version": manifest["version"],
        "api_version": "v2",
        "quotes_contract_version": "v1",
        "supported_intervals": given["interval"]["enum"],
        "max_page_size": given["page_size"]["maximum"],
        "max_range_days": 365,
        "max_tickers_per_request": given["tickers"]["maxItems"],
    }


@row("max_range_days enforced")
def test_a_range_has_at_most_the_stated_days(arche: Client) -> None:
    assert answered(arche, "quotes.historical", **{**RANGE, "from": "2025-01-07"})["items"]
    assert failed(arche, "quotes.historical", **{**RANGE, "from": "2025-01-06"})["type"] == "VALIDATION_ERROR"


# Errors


@row("error object: type, message, retryable, http_status, http_code, trace_id, retry_after_s")
def test_an_error_has_the_manifests_fields(arche: Client, remote: Client, api: QuotesServer) -> None:
    api.plan = failure(503, "MARKET_DATA_UNAVAILABLE", Retry_After="7")
    found = failed(remote, "quotes.live", tickers=["AAPL"])
    assert set(found) == set(CONTRACT["errors"]["schema"]["properties"])
    assert (found["retryable"], found["http_status"], found["retry_after_s"]) == (True, 503, 7.0)
    assert failed(arche, "quotes.live", tickers=["NOPE"])["type"] == "SYMBOL_NOT_FOUND"


@row("type VALIDATION_ERROR")
def test_wrong_arguments_are_a_validation_error(arche: Client) -> None:
    found = failed(arche, "quotes.historical", **{**RANGE, "from": "2026-01-07"})
    assert (found["type"], found["retryable"]) == ("VALIDATION_ERROR", False)


@row("type RATE_LIMITED, retry_after_s")
def test_too_many_requests_are_rate_limited(remote: Client, api: QuotesServer) -> None:
    api.plan = failure(429, "RATE_LIMITED", Retry_After="17")
    found = failed(remote, "quotes.live", tickers=["AAPL"])
    assert (found["type"], found["retryable"], found["retry_after_s"]) == ("RATE_LIMITED", True, 17.0)


@row("type UPSTREAM_ERROR (named as an example)")
def test_a_failure_of_the_api_is_an_upstream_error(remote: Client, api: QuotesServer) -> None:
    api.plan = failure(500)
    found = failed(remote, "quotes.live", tickers=["AAPL"])
    assert (found["type"], found["retryable"], found["http_status"]) == ("UPSTREAM_ERROR", True, 500)


@row("http_code a textual phrase ('Bad Request')")
def test_the_code_is_the_phrase_of_the_status(arche: Client, remote: Client, api: QuotesServer) -> None:
    own = failed(arche, "quotes.historical", **{**RANGE, "from": "2026-01-07"})
    assert (own["http_status"], own["http_code"]) == (400, "Bad Request")
    for status, code, phrase in (
        (400, "VALIDATION_ERROR", "Bad Request"),
        (429, "RATE_LIMITED", "Too Many Requests"),
        (500, None, "Internal Server Error"),
    ):
        api.plan = failure(status, code)
        assert failed(remote, "quotes.live", tickers=["AAPL"])["http_code"] == phrase


@row("trace_id from X-Request-ID")
def test_the_trace_is_the_id_of_the_request(remote: Client, api: QuotesServer) -> None:
    api.plan = reply(500, {}, X_Request_ID="theirs-1")
    assert failed(remote, "quotes.live", tickers=["AAPL"])["trace_id"] == "theirs-1"
    api.plan = reply(200, LIVE, X_Request_ID="theirs-2")
    assert answered(remote, "quotes.live", tickers=["AAPL"])["request_id"] == "theirs-2"


@row("Errors reach the client in this shape")
def test_an_error_is_read_from_the_text(arche: Client) -> None:
    found = assert_readable_error(arche, "quotes.live", tickers=["NOPE"])
    jsonschema_rs.validate(CONTRACT["errors"]["schema"], found)
    assert (found["type"], "NOPE" in found["message"]) == ("SYMBOL_NOT_FOUND", True)


# The pages


@row("MANIFEST.md kept beside the JSON")
def test_a_page_beside_the_manifest_describes_it(manifest: dict[str, Any]) -> None:
    page = (ROOT / "mcp/manifest/MANIFEST.md").read_text()
    assert manifest["version"] in page
    for method in manifest["methods"]:
        assert method["name"] in page
        assert all(f"`{name}`" in page for name in method["input_schema"]["properties"])
    assert all(f"`{name}`" in page for name in manifest["errors"]["schema"]["properties"])


@row("docs/mcp/README.md")
def test_a_page_of_the_docs_says_how_to_use_the_server(manifest: dict[str, Any]) -> None:
    page = (ROOT / "docs/mcp/README.md").read_text()
    assert "openbell mcp arche" in page
    assert all(method["name"] in page for method in manifest["methods"])


shown_by(
    "Version bump discipline",
    "servers/test_arche_manifest.py::test_the_version_is_the_one_that_the_changes_since_the_last_release_need",
    "servers/test_arche_manifest.py::test_a_change_needs_its_version_and_no_lower_one_is_enough",
    "servers/test_arche_manifest.py::test_make_docs_refuses_a_version_that_is_too_low",
)
