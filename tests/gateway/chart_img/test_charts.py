"""Charts of the chart API on real sockets: bodies, pictures, storage and lists."""

from __future__ import annotations

import http.client
import json
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from openbell.desk.pictures.chart_image.pictures import expiry_of
from tests.client import PATIENCE
from tests.gateway.chart_img.requests import CHART, LIST, SMALL, STORAGE, ask, draw, fault, shown
from tests.gateway.streamable.gateways import Inside

# Pictures


def test_the_vendors_defaults_hold(gateway: Inside) -> None:
    """The vendor's 800 × 600, and Bitcoin by day."""
    found = draw(gateway, b"")
    assert shown(found).size == (800, 600)
    assert found.body == draw(gateway, {}).body
    day = {"symbol": "BINANCE:BTCUSDT", "interval": "1D", "width": 800, "height": 600, "theme": "light"}
    assert found.body == draw(gateway, {**day, "style": "candle", "format": "png"}).body


def test_a_picture_has_the_asked_format(gateway: Inside) -> None:
    for form in ("png", "jpeg"):
        found = shown(draw(gateway, {**SMALL, "format": form}))
        assert (found.format, found.size) == (form.upper(), (400, 300))


def test_the_truth_about_the_bars_is_in_a_header(gateway: Inside) -> None:
    truth = json.loads(draw(gateway, SMALL)["x-openbell-truth"] or "")
    assert (truth["data"], truth["feed"], truth["as_of"]) == ("simulated", "sim", "2026-01-07T15:30:20+00:00")
    line = {"name": "Horizontal Line", "input": {"price": 1e9, "text": "über"}}
    noted = json.loads(draw(gateway, {**SMALL, "drawings": [line]}, STORAGE)["x-openbell-truth"] or "")
    assert "drawings[0] (Horizontal Line) is outside the picture" in noted["note"]


def test_both_forms_of_a_config_draw_the_same(gateway: Inside) -> None:
    contract = {"studies": [{"name": "RSI@tv-basicstudies", "inputs": {"length": 7}}], "range": "7D"}
    vendor = {"studies": [{"name": "Relative Strength Index", "input": {"length": 7}}], "range": "7D"}
    assert draw(gateway, {**SMALL, **contract}).body == draw(gateway, {**SMALL, **vendor}).body


# Bodies


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"null", b'"x"', b"7", b"\xff\xfe", b'{"width": NaN}', b'{"a": [Infinity]}', b"{'a': 1}",
        b"[" * 100_000, b'{"a":' * 100_000, b'{"width": ' + b"9" * 5000 + b"}", b"--x\r\nform", b"\x00",
    ],
    ids=lambda body: repr(body[:16]),
)  # fmt: skip
def test_what_is_no_json_object_is_a_bad_request(gateway: Inside, body: bytes) -> None:
    assert fault(draw(gateway, body), 400).startswith("Bad Request")


@pytest.mark.parametrize(
    ("change", "params"),
    [
        ({"interval": "7m"}, ["interval"]),
        ({"width": 399}, ["width"]),
        ({"width": 1e999}, ["width"]),
        ({"height": "300"}, ["height"]),
        ({"watermarkSize": 10**400}, ["watermarkSize"]),
        ({"theme": {"a": [1]}, "style": 7}, ["theme", "style"]),
        ({"range": {"from": "x", "to": "y"}}, ["range"]),
        ({"timezone": "Mars/Olympus"}, ["timezone"]),
        ({"studies": [{"name": "Nothing"}]}, ["studies[0].name"]),
        ({"studies": [{"name": "MACD", "input": {"in_0": -1}}]}, ["studies[0].input.in_0"]),
        ({"studies": {}, "drawings": 1}, ["studies", "drawings"]),
        ({"drawings": [{"name": "Trend Line", "input": {}}]}, None),
    ],
)
def test_a_field_that_is_wrong_is_named(gateway: Inside, change: dict[str, Any], params: list[str] | None) -> None:
    body = json.dumps({**SMALL, **change}).replace("Infinity", "1e999").encode()
    found = fault(draw(gateway, body), 422)
    assert all(set(each) == {"value", "msg", "param", "location"} for each in found)
    if params is not None:
        assert [each["param"] for each in found] == params


def test_an_invalid_symbol_has_the_vendors_words(gateway: Inside) -> None:
    for symbol in ("BTCUSDT", "NASDAQ:NOPE", "", "A:" + "B" * 500, 7):
        assert fault(draw(gateway, {**SMALL, "symbol": symbol}), 422) == "Invalid Symbol"


def test_a_range_without_bars_is_an_error_of_the_client(gateway: Inside) -> None:
    later = {"from": "2026-03-01T00:00:00.000Z", "to": "2026-03-02T00:00:00.000Z"}
    assert "no closed bars of 1h" in fault(draw(gateway, {**SMALL, "range": later}), 422)


def test_duplicate_keys_and_unknown_fields_draw_and_deep_nesting_does_not(gateway: Inside) -> None:
    twice = json.dumps(SMALL).removesuffix("}") + ', "symbol": "NASDAQ:AAPL"}'
    assert draw(gateway, twice.encode()).body == draw(gateway, {**SMALL, "symbol": "NASDAQ:AAPL"}).body
    assert draw(gateway, {**SMALL, "symbl": 1}).body == draw(gateway, SMALL).body
    for levels in (8, 300, 940):
        deep = json.dumps({**SMALL, "override": "x"}).replace('"x"', '{"a":' * levels + "1" + "}" * levels)
        assert [each["param"] for each in fault(draw(gateway, deep.encode()), 422)] == ["config"]


def test_a_body_in_chunks_is_read_whole_and_an_endless_one_is_refused(gateway: Inside) -> None:
    data = json.dumps(SMALL).encode()
    head = gateway.bytes_of("POST", CHART, None, None, x_api_key=gateway.tokens["reader"], Transfer_Encoding="chunked")
    parts = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (data[:9], data[9:]))
    assert shown(gateway.send(head + parts + b"0\r\n\r\n")).size == (400, 300)
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    fault(gateway.send(head + chunk * 17), 413)


# Storage


def test_a_stored_picture_is_served_without_a_token_until_it_expires(gateway: Inside) -> None:
    answer = draw(gateway, SMALL, STORAGE)
    body = answer.json
    assert (answer.status, answer["content-type"]) == (200, "application/json")
    assert set(body) == {"url", "etag", "expire", "expireAt", "createdAt", "size"}
    expires, created = (datetime.fromisoformat(body[name]) for name in ("expireAt", "createdAt"))
    assert expires - created == timedelta(days=120)
    assert abs(created - datetime.now(UTC)) < timedelta(minutes=5)
    url = urlsplit(body["url"])
    assert url.netloc == gateway.host
    assert re.fullmatch(r"/storage/[0-9a-f]{10}-[0-9a-f]{32}\.png", url.path)
    picture = gateway.request("GET", url.path, None)
    assert shown(picture).size == (400, 300)
    assert (picture.body, body["size"]) == (draw(gateway, SMALL).body, len(picture.body))
    other = draw(gateway, SMALL, STORAGE).json
    assert (other["etag"], other["url"] == body["url"]) == (body["etag"], False)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=PATIENCE)
    connection.request("HEAD", url.path)
    head = connection.getresponse()
    assert (head.status, head.getheader("content-length"), head.read()) == (200, str(body["size"]), b"")
    connection.close()
    name = url.path.removeprefix("/storage/")
    (file,) = (gateway.settings.home / "pictures").glob(f"*/{name}")
    expired = f"{int(time.time()) - 1:010x}{name[10:]}"
    file.rename(file.with_name(expired))
    for gone in (name, expired):
        assert fault(gateway.request("GET", f"/storage/{gone}", None), 404) == "Not Found"
    assert expiry_of(expired) is not None


@pytest.mark.parametrize(
    "name",
    [
        "", "x", "../gateway.json", "%2e%2e/gateway.json", "..%2fgateway.json", "%2e%2e%2fgateway.json", ".", "..",
        "notes.txt", "{name}.part", "{name}/", "{name}%00", "{name}%0a", "{upper}", "./{name}", "x/{name}", "{name}?x/..",
    ],
)  # fmt: skip
def test_other_names_are_not_found(gateway: Inside, name: str) -> None:
    stored = urlsplit(draw(gateway, SMALL, STORAGE).json["url"]).path.removeprefix("/storage/")
    folder = gateway.settings.home / "pictures"
    (folder / "notes.txt").write_text("mine")
    (folder / f"{stored}.part").write_bytes(b"half")
    path = f"/storage/{name.format(name=stored, upper=stored.upper())}"
    answer = gateway.request("GET", path, None)
    if name == "{name}?x/..":
        assert answer.status == 200
        return
    assert answer.status in {400, 404}, answer.body
    assert "message" in answer.json


def test_pictures_are_only_read(gateway: Inside) -> None:
    path = urlsplit(draw(gateway, SMALL, STORAGE).json["url"]).path
    for method in ("POST", "PUT", "DELETE"):
        fault(gateway.send(gateway.bytes_of(method, path, b"", "alice")), 404)
    assert gateway.request("GET", path, None).status == 200


# Lists


def test_exchanges_and_symbols_are_at_the_vendors_and_the_contracts_paths(gateway: Inside) -> None:
    listed = ask(gateway, LIST).json
    assert (set(listed), listed["updatedAt"]) == ({"updatedAt", "payload"}, "2026-01-07T15:30:20+00:00")
    assert {"BINANCE", "NASDAQ", "FX"} <= set(listed["payload"])
    assert ask(gateway, "/v3/tradingview/exchanges").json == listed
    symbols = ask(gateway, "/v3/tradingview/exchange/BINANCE").json
    assert ask(gateway, "/v3/tradingview/exchange/BINANCE/symbols").json == symbols
    assert ask(gateway, "/v3/tradingview/exchange/binance").json == symbols
    (bitcoin,) = [each for each in symbols["payload"] if each["symbol"] == "BTCUSDT"]
    assert {name: bitcoin[name] for name in ("description", "type", "exchange", "currency_code")} == {
        "description": "Bitcoin / TetherUS",
        "type": "crypto",
        "exchange": "BINANCE",
        "currency_code": "USDT",
    }


def test_symbols_are_filtered(gateway: Inside) -> None:
    def names(query: str, exchange: str = "BINANCE") -> set[str]:
        payload = ask(gateway, f"/v3/tradingview/exchange/{exchange}?{query}").json["payload"]
        return {each["symbol"] for each in payload}

    every = names("")
    assert names("symbol=btc") == {each for each in every if "BTC" in each} < every
    assert names("type=CRYPTO") == every
    assert names("type=stock") == set()
    assert names("symbol=BTC&type=crypto") == names("symbol=BTC")
    assert names("type=stock", "NASDAQ") >= {"AAPL"}


def test_every_exchange_that_is_listed_has_a_symbol_that_draws(gateway: Inside) -> None:
    for exchange in ask(gateway, LIST).json["payload"]:
        first = ask(gateway, f"/v3/tradingview/exchange/{exchange}").json["payload"][0]["symbol"]
        shown(draw(gateway, {**SMALL, "range": "5D", "symbol": f"{exchange}:{first}"}))
