"""Attacks by clients that describe themselves, in a registration or a metadata document, each refused."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from openbell.gateway.oauth import authorize as authorize_module
from openbell.gateway.oauth import clients as clients_module
from openbell.gateway.oauth.clients import MOST_OF_ADDRESS
from openbell.gateway.oauth.documents import MOST_BYTES, is_document_url
from openbell.stores.access import clients as stored
from tests.gateway.oauth.people import REDIRECT, App, Browser, answer_in, error_of
from tests.gateway.oauth.server import Fetched, Gateway, OutboundFailed, OutboundRefused

URL = "https://app.example/client.json"
JSON = {"content-type": "application/json"}

# Registration


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://app.example/cb",
        "app.example/cb",
        "//app.example/cb",
        "https:///cb",
        "https://",
        "https:app.example",
        "myapp://cb",
        "http://app.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.1@evil.example/cb",
        "http://2130706433/cb",
        "http://[::ffff:127.0.0.1]/cb",
        "https://user@app.example/cb",
        "https://user:secret@app.example/cb",
        "https://app.example/cb#fragment",
        "https://app.example/cb#",
        "https://\u0430pple.com/cb",
        "https://app.example\\@evil.example/cb",
        "https://app.example/cb\r\nX: y",
        "https://app.example/ cb",
        "https://app.example:99999/cb",
        "https://app.example:0/cb",
        "https://app.example:/cb",
        "https://app%2eexample/cb",
        "https://[::1/cb",
        "https://*.example/cb",
        "https://app.example/" + "x" * 3000,
        "",
    ],
)
def test_hostile_redirect_uri(app: App, uri: str) -> None:
    assert error_of(app.register(redirect_uris=[uri])) == "invalid_redirect_uri"
    assert error_of(app.register(redirect_uris=[REDIRECT, uri])) == "invalid_redirect_uri"


@pytest.mark.parametrize(
    "uris", [None, [], "https://app.example/cb", [1], [None], {}, [REDIRECT] * 11], ids=lambda uris: str(uris)[:20]
)
def test_redirect_uris_of_another_shape(app: App, uris: Any) -> None:
    assert error_of(app.register(redirect_uris=uris)).startswith("invalid_")


@pytest.mark.parametrize(
    "name",
    [
        "x" * 10_000,
        "x" * 81,
        "a\u202egnp.exe",
        "a\u200bb",
        "a\nb",
        "a\x00b",
        "a\x1b[31m",
        "\u2066x",
        "\ue000",
        "\ud800",
        7,
        ["x"],
    ],
    ids=lambda name: repr(name)[:20],
)
def test_hostile_name(gateway: Gateway, app: App, name: Any) -> None:
    described = json.dumps({"client_name": name, "redirect_uris": [REDIRECT]})
    answer = gateway.connect().post("/register", content=described, headers={"Content-Type": "application/json"})
    assert error_of(answer) == "invalid_client_metadata"


@pytest.mark.parametrize(
    "metadata",
    [
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "tls_client_auth"},
        {"token_endpoint_auth_method": ["none"]},
        {"grant_types": ["refresh_token"]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": "authorization_code"},
        {"response_types": ["token"]},
    ],
    ids=str,
)
def test_registration_for_what_the_server_does_not_do(app: App, metadata: dict[str, Any]) -> None:
    assert error_of(app.register(**metadata)) == "invalid_client_metadata"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"7", b"[" * 9000, b"\xff", b'{"redirect_uris": NaN}'])
def test_registration_that_is_not_an_object(gateway: Gateway, body: bytes) -> None:
    answer = gateway.connect().post("/register", content=body, headers={"Content-Type": "application/json"})
    assert error_of(answer).startswith("invalid_")


def test_a_client_cannot_choose_its_id_or_its_secret(app: App) -> None:
    answer = app.register(
        client_id=app.id, client_secret="mine", token_endpoint_auth_method="client_secret_post"
    ).json()
    assert answer["client_id"] != app.id
    assert answer["client_secret"].startswith("obk_")


def test_registration_flooding_from_one_address(gateway: Gateway, app: App) -> None:
    answers = [app.register().status_code for _ in range(MOST_OF_ADDRESS + 2)]
    assert answers == [201] * (MOST_OF_ADDRESS - 1) + [429] * 3
    gateway.clock.advance(3601)
    assert app.register().status_code == 201


def test_registrations_of_one_address_that_come_at_once(app: App) -> None:
    """All of them are counted: otherwise one address could use up what all addresses share."""
    with ThreadPoolExecutor(3 * MOST_OF_ADDRESS) as pool:
        codes = Counter(each.status_code for each in pool.map(lambda _: app.register(), range(3 * MOST_OF_ADDRESS)))
    assert codes == {201: MOST_OF_ADDRESS - 1, 429: 2 * MOST_OF_ADDRESS + 1}


def test_registration_flooding_from_many_addresses(gateway: Gateway, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of clients is bounded; those without consent make room, but not while their users may be signing in."""
    monkeypatch.setattr(clients_module, "MOST_REGISTERED", 5)
    monkeypatch.setattr(clients_module, "MOST_OF_ADDRESS", 1000)
    tokens = app.tokens()
    assert [app.register().status_code for _ in range(6)] == [201] * 4 + [503] * 2
    gateway.clock.advance(601)
    assert [app.register().status_code for _ in range(6)] == [201] * 4 + [503] * 2
    assert app.refresh(tokens["refresh_token"]).status_code == 200, "a client that a user trusts stays"


# Metadata documents


def document(**changes: Any) -> dict[str, Any]:
    return {"client_id": URL, "client_name": "Documented", "redirect_uris": ["https://app.example/cb"], **changes}


def link(app: App, client_id: str = URL, redirect_uri: str = "https://app.example/cb") -> str:
    return app.link(client_id=client_id, redirect_uri=redirect_uri)


def refused(app: App, client_id: str = URL) -> None:
    page = Browser(app.gateway).open(link(app, client_id))
    assert page.status_code in {400, 503}
    assert "<form" not in page.text
    assert "location" not in page.headers
    missing = app.gateway.run(app.gateway.store.read(lambda connection: stored.find(connection, client_id)))
    assert missing is None


def test_a_documented_client_is_shown_as_verified_and_fetched_once(
    gateway: Gateway, app: App, browser: Browser
) -> None:
    gateway.web.pages[URL] = document()
    for _ in range(2):
        page = browser.open(link(app)).text
        assert f"Verified: described by {URL}" in page
        answer_in(browser.submit())
    assert gateway.web.fetched == [URL]
    gateway.clock.advance(3601)
    browser.open(link(app))
    assert gateway.web.fetched == [URL, URL]


def test_a_document_is_fetched_again_when_it_says_so_but_not_at_once(
    gateway: Gateway, app: App, browser: Browser
) -> None:
    body = json.dumps(document()).encode()
    gateway.web.pages[URL] = Fetched(200, {**JSON, "Cache-Control": "public, max-age=0"}, body)
    browser.open(link(app))
    browser.open(link(app))
    assert len(gateway.web.fetched) == 1
    gateway.clock.advance(60)
    browser.open(link(app))
    assert len(gateway.web.fetched) == 2


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/client.json",
        "https://10.0.0.1/client.json",
        "https://2130706433/client.json",
        "https://127.1/client.json",
        "https://0x7f.0.0x1/client.json",
        "https://user@app.example/client.json",
        "https://app.example/client.json#x",
        "https://app.example/../client.json",
        "https://app.example/a/%2e%2E/client.json",
        "https://app.example",
        "https://app.example/",
        "https://app.example:0/client.json",
        "https://app.example:99999/client.json",
        "https://\u0430pp.example/client.json",
        "https://app.example\\@evil.example/x",
        "https://app.example/" + "x" * 600,
        "https://./client.json",
    ],
)
def test_document_at_an_address_that_is_never_fetched(gateway: Gateway, app: App, url: str) -> None:
    gateway.web.pages[url] = document(client_id=url)
    assert not is_document_url(url)
    refused(app, url)
    assert gateway.web.fetched == []


@pytest.mark.parametrize("url", ["http://app.example/client.json", "ftp://app.example/c", "HTTPS://app.example/c"])
def test_document_that_is_not_https(gateway: Gateway, app: App, url: str) -> None:
    refused(app, url)
    assert gateway.web.fetched == []


def test_document_whose_host_leads_into_a_private_network(gateway: Gateway, app: App) -> None:
    """What a name resolves to is judged where it is connected to, by the gateway's outbound requests."""
    gateway.web.pages[URL] = OutboundRefused("10.0.0.1 is not a public address")
    page = Browser(gateway).open(link(app))
    assert page.status_code == 400
    assert "10.0.0.1" not in page.text, "nothing is told about the network"
    refused(app)


@pytest.mark.parametrize("failure", [OutboundFailed("timeout"), TimeoutError(), OSError("reset")], ids=repr)
def test_document_that_is_slow_or_fails(gateway: Gateway, app: App, failure: Exception) -> None:
    gateway.web.pages[URL] = failure
    refused(app)
    refused(app)
    assert len(gateway.web.fetched) == 1, "a failed one is not fetched again for 30 s"


@pytest.mark.parametrize(
    "answer",
    [
        Fetched(302, {"location": "https://evil.example/client.json", **JSON}, json.dumps(document()).encode()),
        Fetched(404, JSON, json.dumps(document()).encode()),
        Fetched(200, {"content-type": "text/html"}, json.dumps(document()).encode()),
        Fetched(200, {}, json.dumps(document()).encode()),
        Fetched(200, JSON, b"x" * 100),
        Fetched(200, JSON, b"[" * 10_000),
        Fetched(200, JSON, json.dumps(document(padding="x" * MOST_BYTES)).encode()),
        document(client_id="https://other.example/client.json"),
        document(client_id=URL + "/"),
        document(client_id=None),
        document(client_secret="x"),
        document(token_endpoint_auth_method="client_secret_post"),
        document(token_endpoint_auth_method="private_key_jwt"),
        document(redirect_uris=[]),
        document(redirect_uris=["javascript:alert(1)"]),
        document(client_name="a\u202eb"),
        [document()],
    ],
    ids=lambda answer: str(answer)[:60],
)
def test_document_that_does_not_describe_its_client(gateway: Gateway, app: App, answer: Any) -> None:
    gateway.web.pages[URL] = answer
    refused(app)


def test_document_whose_redirects_do_not_contain_the_one_asked_for(
    gateway: Gateway, app: App, browser: Browser
) -> None:
    gateway.web.pages[URL] = document(redirect_uris=["https://app.example/cb", "myapp://cb"])
    for uri in ("https://evil.example/cb", "myapp://cb"):
        page = browser.open(link(app, redirect_uri=uri))
        assert (page.status_code, "location" in page.headers) == (400, False)
    assert browser.open(link(app)).status_code == 200, "a redirect that nobody may have is left out"


def test_fetching_flood(gateway: Gateway, app: App) -> None:
    """A stranger cannot make the gateway send more than 10 requests at once."""
    for number in range(15):
        Browser(gateway).open(link(app, f"https://victim.example/{number}"))
    assert len(gateway.web.fetched) in {10, 11}  # one more is allowed every 10 s


def test_attack_documents_for_one_address_leave_those_of_others(
    gateway: Gateway, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each address has a limit of its own, and a document that is known is used if it cannot be fetched again."""
    gateway.web.pages[URL] = document()
    assert Browser(gateway).open(link(app)).status_code == 200
    for number in range(15):
        Browser(gateway).open(link(app, f"https://victim.example/{number}"))
    gateway.clock.advance(86_401)
    assert Browser(gateway).open(link(app)).status_code == 200
    monkeypatch.setattr(authorize_module, "address_of", lambda _request: "198.51.100.7")
    gateway.web.pages["https://other.example/app"] = document(client_id="https://other.example/app")
    assert Browser(gateway).open(link(app, "https://other.example/app")).status_code == 200


def test_attack_registrations_of_many_addresses_are_bounded_in_all(
    gateway: Gateway, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that is refused for its own registrations takes nothing from the limit of all."""
    addresses = iter([*["198.51.100.1"] * 60, *(f"203.0.113.{number}" for number in range(1, 250))])
    monkeypatch.setattr(clients_module, "address_of", lambda _request: next(addresses))
    first = [app.register().status_code for _ in range(60)]
    assert first == [201] * MOST_OF_ADDRESS + [429] * 40
    others = [app.register().status_code for _ in range(200)]
    assert others[:170] == [201] * 170
    assert 503 in others[175:]


def test_the_token_endpoint_fetches_nothing(gateway: Gateway, app: App) -> None:
    gateway.web.pages[URL] = document()
    form = {"client_id": URL, "grant_type": "refresh_token", "refresh_token": "x"}
    assert error_of(app.http.post("/token", data=form), 401) == "invalid_client"
    assert gateway.web.fetched == []


def test_a_document_does_not_replace_a_registered_client(gateway: Gateway, app: App) -> None:
    gateway.web.pages[URL] = document(client_id=app.id)
    refused(app)
    found = gateway.run(gateway.store.read(lambda connection: stored.find(connection, app.id)))
    assert found.name == "An app"


def test_a_host_of_a_document_is_shown_in_punycode(gateway: Gateway, app: App, browser: Browser) -> None:
    url = "https://xn--pple-43d.example/client.json"
    gateway.web.pages[url] = document(client_id=url)
    assert f"described by {url}" in browser.open(link(app, url)).text


def test_a_documented_client_of_a_program_is_shown_with_a_warning(gateway: Gateway, app: App, browser: Browser) -> None:
    gateway.web.pages[URL] = document(redirect_uris=["http://127.0.0.1/cb"])
    page = browser.open(link(app, redirect_uri="http://127.0.0.1:9999/cb"))
    assert "Any program on your computer can use this name" in page.text
    assert isinstance(page, httpx2.Response)
