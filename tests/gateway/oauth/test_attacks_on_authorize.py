"""Attacks on the authorization endpoint, each refused."""

from __future__ import annotations

import logging
import socket
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.gateway.oauth.people import REDIRECT, VERIFIER, App, Browser, answer_in, challenge_of
from tests.gateway.oauth.server import Gateway

WEB = "https://app.example/cb"


def refused(app: App, error: str, **changes: str | None) -> dict[str, str]:
    """The answer that a client on the user's machine gets instead of a consent page."""
    answer = answer_in(Browser(app.gateway).open(app.link(**changes)))
    assert "code" not in answer
    assert (answer["error"], answer["iss"]) == (error, app.gateway.url)
    return answer


def shown_as_page(app: App, **changes: str | None) -> str:
    """The page that is shown because nobody may be redirected."""
    page = Browser(app.gateway).open(app.link(**changes))
    assert page.status_code == 400
    assert "location" not in page.headers
    assert "<form" not in page.text
    return page.text


# PKCE


def test_pkce_missing(app: App) -> None:
    refused(app, "invalid_request", code_challenge=None)


def test_pkce_plain(app: App) -> None:
    refused(app, "invalid_request", code_challenge_method="plain", code_challenge=VERIFIER)


def test_pkce_without_a_method_which_would_mean_plain(app: App) -> None:
    refused(app, "invalid_request", code_challenge_method=None)


@pytest.mark.parametrize("challenge", ["short", "x" * 44, "x" * 42 + "=", "x" * 42 + "\n"])
def test_pkce_challenge_that_is_no_sha256(app: App, challenge: str) -> None:
    refused(app, "invalid_request", code_challenge=challenge)


# Types, scopes and resources


@pytest.mark.parametrize("kind", ["token", "id_token", "code token", "none", "CODE"])
def test_response_type_other_than_code(app: App, kind: str) -> None:
    assert refused(app, "unsupported_response_type", response_type=kind)["state"] == "a state"


def test_response_type_missing(app: App) -> None:
    refused(app, "invalid_request", response_type=None)


@pytest.mark.parametrize("scope", ["root", "read root", "READ", "read,trade", "*"])
def test_unknown_scope(app: App, scope: str) -> None:
    refused(app, "invalid_scope", scope=scope)


@pytest.mark.parametrize(
    "resource",
    [
        "https://elsewhere.example/mcp",
        "{url}/other",
        "{url}/mcp#x",
        "{url}/mcp?x",
        "{url}@elsewhere.example/mcp",
        "x" * 99,
    ],
)
def test_resource_of_another_server(app: App, resource: str) -> None:
    refused(app, "invalid_target", resource=resource.replace("{url}", app.gateway.url))


# Redirects


@pytest.mark.parametrize(
    "wanted",
    [
        "https://app.example/other",
        "https://app.example/cb/",
        "https://app.example/cb/../other",
        "https://app.example/CB",
        "https://evil.example/cb",
        "https://app.example.evil.example/cb",
        "https://app.example@evil.example/cb",
        "https://app.example:8443/cb",
        "http://app.example/cb",
        "https://app.example/cb#fragment",
        "https://app.example/cb?extra=1",
        "https://app.example/cb%2f",
        "//app.example/cb",
        "javascript:alert(1)",
        "https://app.example/cb\r\nX-Injected: 1",
        "http://127.0.0.1/cb",
    ],
)
def test_redirect_that_was_not_registered(gateway: Gateway, wanted: str) -> None:
    assert "redirect_uri" in shown_as_page(App(gateway, redirect_uris=[WEB]), redirect_uri=wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        "http://127.0.0.1:99/other",
        "http://127.0.0.1:99/callback?x",
        "http://localhost:4711/callback",
        "http://127.0.0.1.evil.example:4711/callback",
        "http://127.0.0.1:4711@evil.example/callback",
        "https://127.0.0.1:4711/callback",
        "http://127.0.0.1:/callback",
        "http://127.0.0.1:99999/callback",
        "http://127.0.0.1:99/callback#x",
    ],
)
def test_loopback_redirect_that_differs_in_more_than_its_port(app: App, wanted: str) -> None:
    assert "redirect_uri" in shown_as_page(app, redirect_uri=wanted)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_only_the_port_of_a_loopback_redirect_may_differ(gateway: Gateway, browser: Browser, host: str) -> None:
    app = App(gateway, redirect_uris=[f"http://{host}/cb"])
    wanted = f"http://{host}:50123/cb"
    browser.open(app.link(redirect_uri=wanted))
    assert browser.submit().headers["location"].startswith(wanted + "?code=")


def test_redirect_left_out_by_a_client_with_several(gateway: Gateway) -> None:
    app = App(gateway, redirect_uris=[WEB, REDIRECT])
    assert "redirect_uri" in shown_as_page(app, redirect_uri=None)


def test_an_unknown_client_is_never_redirected(app: App) -> None:
    for unknown in ("nobody", "x" * 5000, "a\nb", "é", "https://"):
        assert "evil.example" not in shown_as_page(app, client_id=unknown, redirect_uri="https://evil.example/")


def test_a_faulty_request_does_not_redirect_to_a_website_by_itself(gateway: Gateway) -> None:
    """Anybody can register a client: its errors must not make the gateway an open redirector."""
    page = shown_as_page(App(gateway, redirect_uris=["https://evil.example/phish"]), response_type="bad")
    assert '<a href="https://evil.example/phish?state=a+state&amp;error=' in page
    assert "Back to evil.example" in page


@pytest.mark.parametrize(
    "state", ["https://evil.example/", "//evil.example", "x&code=stolen&iss=evil", "#evil", "a=b?c"]
)
def test_open_redirect_through_state(app: App, browser: Browser, state: str) -> None:
    browser.open(app.link(state=state))
    location = browser.submit().headers["location"]
    assert location.startswith(REDIRECT + "?code=obc_")
    assert [name for name, _ in parse_qsl(urlsplit(location).query)] == ["code", "state", "iss"]
    assert dict(parse_qsl(urlsplit(location).query))["state"] == state


# Injection


@pytest.mark.parametrize("state", ["x\r\nSet-Cookie: a=b", "x\nLocation: https://evil.example", "\u2028", "\x1b[31m"])
def test_header_injection_in_state(app: App, browser: Browser, state: str) -> None:
    browser.open(app.link(state=state))
    answer = browser.submit()
    assert answer_in(answer)["state"] == state
    assert "set-cookie" not in answer.headers
    assert answer.headers["location"].isprintable()


def test_header_injection_in_client_id(gateway: Gateway) -> None:
    page = gateway.get("/authorize?client_id=x%0d%0aSet-Cookie:%20a=b&response_type=code")
    assert page.status_code == 400
    assert "set-cookie" not in page.headers


def test_markup_in_parameters_is_not_echoed(gateway: Gateway, app: App) -> None:
    for name in ("client_id", "redirect_uri"):
        assert "<script>" not in shown_as_page(app, **{name: "<script>alert(1)</script>"})
    page = Browser(gateway).open(app.link(state="</form><script>alert(1)</script>"))
    assert "<script" not in page.text


def test_attack_a_passphrase_in_the_field_of_the_name_is_not_logged(
    gateway: Gateway, app: App, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    browser.open(app.link())
    browser.submit(name="correct-horse-battery", passphrase="ann")
    assert any("an unknown user" in record.getMessage() for record in caplog.records)
    assert not any("correct-horse-battery" in record.getMessage() for record in caplog.records)


def test_log_injection(gateway: Gateway, app: App, browser: Browser, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    browser.open(app.link(client_id="x\nERROR forged"))
    browser.open(app.link(state="x\nERROR forged"))
    browser.submit(name="x\r\nERROR forged", passphrase="secret\nERROR forged")
    browser.submit()
    app.post("/token", grant_type="x\nERROR forged", code="x\nERROR forged")
    records = [record for record in caplog.records if record.name.startswith("openbell")]
    assert any("an unknown user" in record.getMessage() for record in records)
    for record in records:
        assert "forged" not in record.getMessage()
        assert record.getMessage().isprintable()


def test_no_secret_reaches_the_log(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    code = app.code()
    tokens = app.exchange(code).json()
    app.exchange(code)
    app.refresh(tokens["refresh_token"])
    said = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("openbell"))
    assert said
    for secret in (code, tokens["access_token"], tokens["refresh_token"], "correct horse"):
        assert secret not in said


# Parameters


@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "state", "scope", "code_challenge", "resource", "unknown"]
)
def test_duplicated_parameter(gateway: Gateway, app: App, name: str) -> None:
    page = gateway.get(f"{app.link()}&{name}=x&{name}=x")
    assert page.status_code == 400
    assert "location" not in page.headers


def test_a_query_that_is_too_long(gateway: Gateway, app: App) -> None:
    assert gateway.get(app.link(state="x" * 5000)).status_code == 400
    assert gateway.get(app.link(state="x" * 20_000)).status_code == 413


@pytest.mark.parametrize("query", ["client_id=%ff", "client_id=%00", "&".join(f"a{n}=1" for n in range(60))])
def test_a_query_that_cannot_be_read(gateway: Gateway, query: str) -> None:
    assert gateway.get(f"/authorize?{query}").status_code == 400


def test_a_request_in_raw_bytes(gateway: Gateway) -> None:
    place = urlsplit(gateway.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=10) as raw:
        raw.sendall(b"GET /authorize?client_id=\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_other_methods(gateway: Gateway, app: App, method: str) -> None:
    assert gateway.connect().request(method, app.link()).status_code == 405


def test_the_issuer_is_in_every_answer(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link(code_challenge=challenge_of(VERIFIER)))
    assert answer_in(browser.submit())["iss"] == gateway.url
    browser.open(app.link())
    assert answer_in(browser.submit(action="deny"))["iss"] == gateway.url
    assert refused(app, "invalid_scope", scope="root")["iss"] == gateway.url
