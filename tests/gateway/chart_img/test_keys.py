"""Keys of the chart API, its routes, and what is recorded about requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.chart_img.requests import AS_OF, CHART, LIST, SMALL, STORAGE, ask, draw, fault, shown
from tests.gateway.guard.serving import read
from tests.gateway.streamable.gateways import Inside
from tests.waiting import wait_for


@pytest.mark.parametrize(("method", "path"), [("POST", CHART), ("POST", STORAGE), ("GET", LIST)])
def test_a_key_is_needed(gateway: Inside, method: str, path: str) -> None:
    body = json.dumps(SMALL).encode() if method == "POST" else None

    def answer(**headers: str | None) -> Any:
        return gateway.send(gateway.bytes_of(method, path, body, None, **headers))

    assert "x-api-key" in fault(answer(), 401)
    for key in ("wrong", gateway.tokens["reader"][:-1], "x" * 5000, "a b", "ü"):
        fault(answer(x_api_key=key), 403)
    lacking = ("keeper", "nothing", "looker" if path == STORAGE else "trader")
    for who in lacking:  # `trade` includes `write`
        assert "scope" in fault(answer(x_api_key=gateway.tokens[who]), 403)
    assert answer(x_api_key=gateway.tokens["reader"]).status == 200
    assert answer(Authorization=f"Bearer {gateway.tokens['reader']}").status == 200
    fault(answer(Authorization=f"Bearer {gateway.tokens['bob']}", x_api_key=gateway.tokens["reader"]), 403)


def test_attack_a_token_in_an_address_is_refused(gateway: Inside) -> None:
    """Proxies, browsers and logs keep addresses, so that a token counts in a header only."""
    key = gateway.tokens["reader"]
    assert "x-api-key" in fault(gateway.request("GET", f"{LIST}?key={key}", None), 401)
    fault(gateway.request("GET", f"/v3/tradingview/exchange/BINANCE?symbol=BTC&key={key}", None), 401)
    fault(gateway.request("GET", f"{LIST}?key={key}", None, x_api_key=key), 401)
    fault(gateway.request("GET", f"{LIST}?key=", None), 401)
    fault(gateway.request("GET", f"{LIST}?key=wrong", None), 401)
    fault(gateway.request("GET", f"{LIST}?monkey={key}", None), 401)
    fault(gateway.post(SMALL, None, f"{CHART}?key={key}"), 401)
    fault(gateway.post(SMALL, None, f"{STORAGE}?key={key}"), 401)
    fault(gateway.post(SMALL, "reader", f"{CHART}?key={key}"), 401)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", CHART), ("PUT", CHART), ("DELETE", STORAGE), ("POST", f"{CHART}/"), ("POST", f"{CHART}/nothing"),
        ("POST", "/v2/tradingview/layout-chart/abc"), ("GET", "/v1/tradingview/advanced-chart"),
        ("POST", "/v1/tradingview/advanced-chart"), ("GET", "/v1/tradingview/mini-chart"), ("POST", LIST),
        ("GET", "/v3/tradingview/search/btc"), ("GET", "/v3/tradingview/exchange/A-B"), ("GET", "/v3/tradingview/"),
        ("GET", "/v3/tradingview/exchange/" + "A" * 41),
    ],
)  # fmt: skip
def test_other_routes_do_not_exist(gateway: Inside, method: str, path: str) -> None:
    body = b"{}" if method == "POST" else None
    key = gateway.tokens["reader"]
    assert fault(gateway.send(gateway.bytes_of(method, path, body, None, x_api_key=key)), 404) == "Route Not Found"


def test_refusals_of_the_guard_have_the_vendors_form(gateway: Inside) -> None:
    fault(gateway.request("GET", LIST, None, Host="evil.example"), 421)
    fault(gateway.request("GET", "/v2/tradingview/%2e%2e/x", None), 400)
    fault(draw(gateway, b'{"symbol": "' + b"x" * 1_100_000 + b'"}'), 413)
    size = {"Content_Length": "9", "Transfer_Encoding": "chunked"}
    assert draw(gateway, b"{}", **size).status == 400


def test_calls_are_in_metrics_and_audit_and_the_key_is_nowhere(
    gateway: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    key = gateway.tokens["reader"]
    draw(gateway, SMALL, X_Request_ID="chart-1")
    draw(gateway, SMALL, STORAGE, who="writer", X_Request_ID="chart-2")
    draw(gateway, {"symbol": key}, X_Request_ID="chart-3")
    gateway.request("GET", LIST, None, X_Api_Key=key, X_Request_ID="chart-4")
    path = f"/v3/tradingview/exchange/BINANCE?symbol={key}"
    gateway.request("GET", path, None, X_Api_Key=key, X_Request_ID="chart-5")
    draw(gateway, SMALL, who="keeper", X_Request_ID="chart-6")
    log = gateway.settings.home / "audit.log"

    def lines() -> dict[str, dict[str, Any]]:
        found = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return {each["request"]: each for each in found if each.get("request", "").startswith("chart-")}

    wait_for(lambda: len(lines()) == 6, "the audit log")
    assert {name: (each["server"], each["tool"], each["scope"], each["outcome"]) for name, each in lines().items()} == {
        "chart-1": ("chart-img", "draw", "read", "ok"),
        "chart-2": ("chart-img", "store", "write", "ok"),
        "chart-3": ("chart-img", "draw", "read", "error"),
        "chart-4": ("chart-img", "exchanges", "read", "ok"),
        "chart-5": ("chart-img", "symbols", "read", "ok"),
        "chart-6": ("chart-img", "draw", "read", "refused"),
    }
    assert {each["principal"] for each in lines().values()} == {"alice"}
    assert {each["token"] for each in lines().values()} == {"reader", "writer", "keeper"}
    metrics = gateway.request("GET", "/metrics", None).body.decode()
    assert 'openbell_calls_total{server="chart-img",tool="draw",outcome="ok"}' in metrics
    for text in (metrics, log.read_text(), caplog.text):
        assert key not in text


def test_requests_at_once_have_a_limit_and_are_counted_once(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, METRICS="1", MAX_REQUESTS_EACH="1") as gateway, gateway.connect() as slow:
        shown(
            draw(gateway, SMALL, who="reader")
        )  # its first request reads the tokens, which may take longer than another one
        # A body that has not arrived yet occupies the only slot.
        whole = gateway.bytes_of("POST", CHART, json.dumps(SMALL).encode(), None, x_api_key=gateway.tokens["reader"])
        slow.sendall(whole[:-5])
        # A single refusal may be that of a request whose predecessor has not released the slot yet.
        wait_for(lambda: {ask(gateway, LIST).status for _ in range(3)} == {429}, "the slot to be taken")
        before = _refused(gateway)
        fault(draw(gateway, SMALL), 429)
        assert _refused(gateway) == before + 1
        slow.sendall(whole[-5:])
        assert shown(read(slow)).size == (400, 300)


def _refused(gateway: Inside) -> float:
    """Returns the sum of all refusals in the metrics."""
    page = gateway.request("GET", "/metrics", None).body.decode()
    lines = [line for line in page.splitlines() if line.startswith("openbell_refus")]
    assert lines, page
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_a_client_that_goes_in_the_middle_of_its_body_costs_no_chart(gateway: Inside) -> None:
    with gateway.connect() as connection:
        body = json.dumps(SMALL).encode()
        key = gateway.tokens["reader"]
        whole = gateway.bytes_of("POST", CHART, body, None, x_api_key=key, X_Request_ID="gone-1")
        connection.sendall(whole[:-5])
    log = gateway.settings.home / "audit.log"
    wait_for(lambda: log.exists() and '"gone-1"' in log.read_text(), "the audit log")
    (line,) = [json.loads(each) for each in log.read_text().splitlines() if '"gone-1"' in each]
    assert (line["tool"], line["outcome"]) == ("draw", "error")


def test_a_home_that_cannot_be_read_is_a_server_error_in_the_vendors_form(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF) as gateway:
        gateway.desk.watchlist.path.unlink(missing_ok=True)
        gateway.desk.watchlist.path.mkdir()
        assert "Internal" not in fault(ask(gateway, LIST), 500)
        assert shown(draw(gateway, SMALL)).size == (400, 300)


def test_an_unknown_exchange_and_a_bad_query_are_errors_of_the_client(gateway: Inside) -> None:
    assert fault(ask(gateway, "/v3/tradingview/exchange/NOPE"), 404) == "Exchange Not Found"
    fault(ask(gateway, "/v3/tradingview/exchange/BINANCE?" + "a=1&" * 60), 400)
    assert ask(gateway, "/v3/tradingview/exchange/BINANCE?symbol=%FF&type=%00").json["payload"] == []
    assert shown(draw(gateway, SMALL)).size == (400, 300)
