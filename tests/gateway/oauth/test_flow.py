"""The whole flow: metadata, registration, consent, tokens, refresh, revocation; by hand and with the SDK's own client."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from openbell.gateway.oauth.resources import Resources, as_reached, challenge
from openbell.gateway.oauth.secret_texts import STATIC, digest, new_secret
from openbell.market.errors import SettingsError
from openbell.protocol.session import Scope
from openbell.stores.access import static_tokens, users
from openbell.stores.access.static_tokens import StaticToken
from tests.gateway.oauth.people import REDIRECT, App, Browser, answer_in, error_of
from tests.gateway.oauth.server import PATHS, START, Gateway
from tests.waiting import wait_for

# Metadata


def test_the_metadata_names_what_the_server_can(gateway: Gateway) -> None:
    found = gateway.get("/.well-known/oauth-authorization-server").json()
    assert found == {
        "issuer": gateway.url,
        "authorization_endpoint": f"{gateway.url}/authorize",
        "token_endpoint": f"{gateway.url}/token",
        "registration_endpoint": f"{gateway.url}/register",
        "revocation_endpoint": f"{gateway.url}/revoke",
        "scopes_supported": ["read", "write", "trade", "admin"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_post", "client_secret_basic"],
        "code_challenge_methods_supported": ["S256"],
        "client_id_metadata_document_supported": True,
        "authorization_response_iss_parameter_supported": True,
    }


@pytest.mark.parametrize("path", ["", *PATHS])
def test_every_resource_has_metadata(gateway: Gateway, path: str) -> None:
    found = gateway.get(f"/.well-known/oauth-protected-resource{path}").json()
    assert (found["resource"], found["authorization_servers"]) == (f"{gateway.url}{path}", [gateway.url])
    assert found["bearer_methods_supported"] == ["header"]
    assert found["scopes_supported"] == ["read"], "clients ask for all that is listed here"


def test_a_challenge_leads_to_the_metadata(gateway: Gateway) -> None:
    header = gateway.get("/portfolio/mcp").headers["www-authenticate"]
    url = f"{gateway.url}/.well-known/oauth-protected-resource/portfolio/mcp"
    assert header == f'Bearer scope="read", resource_metadata="{url}"'
    assert gateway.get(url).json()["resource"] == f"{gateway.url}/portfolio/mcp"
    assert challenge("https://desk.example/mcp", "invalid_token") == (
        'Bearer error="invalid_token", resource_metadata="https://desk.example/.well-known/oauth-protected-resource/mcp"'
    )


@pytest.mark.parametrize(
    "url", ["http://desk.example", "https://desk.example/sub", "desk.example", "https://u@desk.example"]
)
def test_a_gateway_has_an_https_url_without_a_path(url: str) -> None:
    with pytest.raises(SettingsError, match="https"):
        Resources(url, PATHS)


def test_spellings_of_a_resource_are_one_resource() -> None:
    resources = Resources("https://Desk.example:443/", PATHS)
    assert resources.base == "https://desk.example"
    for spelling in ("https://desk.example/mcp", "https://DESK.example/mcp/", "HTTPS://desk.example:443/mcp"):
        assert resources.known(spelling) == "https://desk.example/mcp"
    for other in ("https://desk.example/MCP", "https://desk.example/mcp?x=1", "https://desk.example/mcp#x", "mcp", ""):
        assert resources.known(other) is None


def test_names_of_this_machine_are_one_resource() -> None:
    """Clients are often given localhost, and compare it with what the metadata says."""
    resources = Resources("http://127.0.0.1:8742", PATHS)
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert resources.known(f"http://{name}:8742/mcp") == "http://127.0.0.1:8742/mcp"
    for other in (
        "http://localhost/mcp",
        "http://localhost:8743/mcp",
        "https://localhost:8742/mcp",
        "http://desk:8742/mcp",
    ):
        assert resources.known(other) is None
    assert as_reached("http://127.0.0.1:8742/mcp", "localhost:8742") == "http://localhost:8742/mcp"
    for host in ("", "evil.example:8742", "localhost:1", "localhost:99999999", "[::1", "localhost@evil.example:8742"):
        assert as_reached("http://127.0.0.1:8742/mcp", host) == "http://127.0.0.1:8742/mcp"
    assert as_reached("https://desk.example/mcp", "localhost") == "https://desk.example/mcp"
    assert Resources("https://desk.example", PATHS).known("https://localhost/mcp") is None


def test_a_client_that_was_given_localhost_gets_access(gateway: Gateway, app: App) -> None:
    local = gateway.url.replace("127.0.0.1", "localhost")
    host = local.removeprefix("http://")
    described = gateway.get("/.well-known/oauth-protected-resource/mcp", headers={"Host": host}).json()
    assert (described["resource"], described["authorization_servers"]) == (f"{local}/mcp", [gateway.url])
    token = app.tokens(resource=f"{local}/mcp")["access_token"]
    assert gateway.asks(token).status_code == 200


# By hand


def test_a_user_gives_a_client_access(gateway: Gateway, app: App, browser: Browser) -> None:
    page = browser.open(app.link())
    assert page.status_code == 200
    for shown in ("An app", "127.0.0.1:4711", "Not verified", f"{gateway.url}/mcp", "Place and cancel orders"):
        assert shown in page.text
    assert "Administer" not in page.text, "it did not ask for that"
    answer = answer_in(browser.submit())
    assert (answer["state"], answer["iss"]) == ("a state", gateway.url)
    issued = app.exchange(answer["code"])
    assert issued.headers["cache-control"] == "no-store"
    tokens = issued.json()
    assert {name: tokens[name] for name in ("token_type", "expires_in", "scope")} == {
        "token_type": "Bearer",
        "expires_in": 900,
        "scope": "read trade",
    }
    assert gateway.asks(tokens["access_token"]).json() == {"subject": "local", "scopes": ["read", "trade", "write"]}


def test_the_user_grants_less_than_was_asked(gateway: Gateway, app: App, browser: Browser) -> None:
    browser.open(app.link(scope="read trade admin"))
    code = answer_in(browser.submit(scope_trade=None, scope_admin=None))["code"]
    tokens = app.exchange(code).json()
    assert tokens["scope"] == "read"
    assert gateway.asks(tokens["access_token"]).json()["scopes"] == ["read"]


def test_a_user_must_grant_something(app: App, browser: Browser) -> None:
    browser.open(app.link())
    page = browser.submit(scope_read=None, scope_trade=None)
    assert page.status_code == 403
    assert "Choose something" in page.text
    assert "code" in answer_in(browser.submit())


def test_a_client_that_asks_for_no_scope_gets_read(app: App) -> None:
    assert app.tokens(scope=None)["scope"] == "read"


def test_a_client_that_asks_for_no_resource_gets_the_whole_gateway(gateway: Gateway, app: App) -> None:
    token = app.tokens(resource=None)["access_token"]
    assert [gateway.asks(token, path).status_code for path in PATHS] == [200, 200]


def test_a_token_of_the_gateway_is_narrowed_to_one_endpoint(gateway: Gateway, app: App) -> None:
    tokens = app.exchange(app.code(resource=gateway.url), resource=f"{gateway.url}/mcp").json()
    assert [gateway.asks(tokens["access_token"], path).status_code for path in PATHS] == [200, 401]
    again = app.refresh(tokens["refresh_token"], resource=f"{gateway.url}/portfolio/mcp").json()
    assert [gateway.asks(again["access_token"], path).status_code for path in PATHS] == [401, 200]


def test_a_user_refuses(app: App, browser: Browser) -> None:
    browser.open(app.link())
    answer = answer_in(browser.submit(action="deny", passphrase=None, name=None))
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "a state", app.gateway.url)


def test_a_refresh_token_is_replaced_each_time(gateway: Gateway, app: App) -> None:
    tokens = app.tokens()
    seen = {tokens["access_token"], tokens["refresh_token"]}
    for _ in range(3):
        gateway.clock.advance(16 * 60)
        assert gateway.asks(tokens["access_token"]).status_code == 401, "an access token lives for 15 minutes"
        tokens = app.refresh(tokens["refresh_token"]).json()
        assert not seen & {tokens["access_token"], tokens["refresh_token"]}
        seen |= {tokens["access_token"], tokens["refresh_token"]}
        assert gateway.asks(tokens["access_token"]).status_code == 200
    gateway.clock.advance(30 * 86_400)
    assert error_of(app.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_a_client_that_lost_the_response_gets_the_same_tokens_again(gateway: Gateway, app: App) -> None:
    old = app.tokens()["refresh_token"]
    first = app.refresh(old).json()
    gateway.clock.advance(5)
    second = app.refresh(old).json()
    assert second == {**first, "expires_in": 895}
    assert app.refresh(second["refresh_token"]).status_code == 200


def test_a_refreshed_access_token_may_have_fewer_scopes_and_the_next_one_all(app: App) -> None:
    tokens = app.refresh(app.tokens()["refresh_token"], scope="read").json()
    assert tokens["scope"] == "read"
    assert app.refresh(tokens["refresh_token"]).json()["scope"] == "read trade"


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_revoked_token_ends_all_tokens_of_its_consent(gateway: Gateway, app: App, kind: str) -> None:
    tokens, others = app.tokens(), app.tokens()
    assert app.post("/revoke", token=tokens[kind]).status_code == 200
    assert gateway.asks(tokens["access_token"]).status_code == 401
    assert error_of(app.refresh(tokens["refresh_token"])) == "invalid_grant"
    assert gateway.asks(others["access_token"]).status_code == 200


def test_a_confidential_client_authenticates_in_the_form_or_the_header(gateway: Gateway) -> None:
    app = App(gateway, token_endpoint_auth_method="client_secret_basic")
    secret = app.info["client_secret"]
    tokens = app.exchange(app.code(), client_secret=secret).json()
    header = httpx2.BasicAuth(app.id, secret)
    asked = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    again = app.http.post("/token", data=asked, auth=header)
    assert again.status_code == 200, "the client's id need not be in the form too"
    assert app.http.post("/revoke", data={"token": again.json()["access_token"]}, auth=header).status_code == 200
    assert gateway.asks(again.json()["access_token"]).status_code == 401


def test_a_public_client_may_send_an_empty_secret(app: App) -> None:
    assert app.exchange(app.code(), client_secret="").status_code == 200


def test_a_client_that_cannot_refresh_gets_no_refresh_token(gateway: Gateway) -> None:
    app = App(gateway, grant_types=["authorization_code"])
    tokens = app.tokens()
    assert "refresh_token" not in tokens
    assert error_of(app.refresh("obr_" + "x" * 43)) == "unauthorized_client"


def test_the_only_redirect_uri_may_be_left_out(app: App, browser: Browser) -> None:
    browser.open(app.link(redirect_uri=None))
    page = browser.submit()
    assert page.headers["location"].startswith(REDIRECT + "?")
    assert app.exchange(answer_in(page)["code"], redirect_uri=None).status_code == 200


def test_the_query_of_a_redirect_uri_is_kept(gateway: Gateway, browser: Browser) -> None:
    app = App(gateway, redirect_uris=["https://app.example/cb?keep=&this=1"])
    browser.open(app.link())
    assert browser.submit().headers["location"].startswith("https://app.example/cb?keep=&this=1&code=obc_")


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    with Gateway(tmp_path) as first:
        first.add_user()
        app = App(first)
        tokens = app.tokens()
    with Gateway(tmp_path, port=int(first.url.rpartition(":")[2])) as second:
        assert second.asks(tokens["access_token"]).status_code == 200
        app.http = second.connect()
        assert app.refresh(tokens["refresh_token"]).status_code == 200


def test_the_flow_works_on_postgresql(tmp_path: Path, database: str) -> None:
    with Gateway(tmp_path, database=database) as gateway:
        gateway.add_user()
        app = App(gateway)
        tokens = app.refresh(app.tokens()["refresh_token"]).json()
        assert gateway.asks(tokens["access_token"]).status_code == 200
        app.post("/revoke", token=tokens["access_token"])
        assert gateway.asks(tokens["access_token"]).status_code == 401
    assert not (tmp_path / "access.sqlite").exists()


# Static tokens


def test_a_static_token_is_valid_everywhere_until_it_expires_or_is_removed(gateway: Gateway) -> None:
    text = new_secret(STATIC)
    made = StaticToken("ci", "robot", frozenset({"read"}), digest(text), START, START + 60)
    gateway.run(gateway.store.write(lambda connection: static_tokens.add(connection, made)))
    assert [gateway.asks(text, path).json() for path in PATHS] == [{"subject": "robot", "scopes": ["read"]}] * 2
    gateway.clock.advance(60)
    assert gateway.asks(text).status_code == 401
    gateway.clock.advance(-30)
    assert gateway.asks(text).status_code == 200
    gateway.run(gateway.store.write(lambda connection: static_tokens.remove(connection, "ci")))
    assert gateway.asks(text).status_code == 401


def test_a_principal_is_read_once_while_nothing_changes(
    gateway: Gateway, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, reads = app.tokens()["access_token"], 0
    read = gateway.store.read

    async def counted(work: Any, *given: Any) -> Any:
        nonlocal reads
        reads += 1
        return await read(work, *given)

    monkeypatch.setattr(gateway.store, "read", counted)

    async def ask(times: int) -> set[Any]:
        return {await gateway.credentials.principal(token, f"{gateway.url}/mcp") for _ in range(times)}

    assert {principal.scopes for principal in gateway.run(ask(50))} == {
        frozenset({Scope.READ, Scope.WRITE, Scope.TRADE})
    }
    assert reads <= 2, "once, and once more if a second has passed"


def test_a_removed_user_is_noticed_by_another_gateway(tmp_path: Path, gateway: Gateway, app: App) -> None:
    token = app.tokens()["access_token"]
    assert gateway.asks(token).status_code == 200
    with Gateway(tmp_path) as other:
        other.run(other.store.write(lambda connection: users.remove(connection, "local", START)))
        removed = time.monotonic()

        def is_refused() -> bool:
            asked = time.monotonic()
            status = gateway.asks(token).status_code
            assert status == 401 or asked - removed < 1, "asked more than a second after the removal"
            return status == 401

        wait_for(is_refused, "a refusal")


# The SDK's own client


class Memory:
    """Where a client of the SDK keeps its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.info = client_info


CIMD = "https://app.example/client.json"


@pytest.mark.parametrize("method", ["none", "client_secret_post", "client_secret_basic", "document"])
def test_the_client_of_the_sdk_signs_in_and_refreshes(gateway: Gateway, browser: Browser, method: str) -> None:
    gateway.web.pages[CIMD] = {"client_id": CIMD, "client_name": "An app", "redirect_uris": ["http://localhost/cb"]}
    described = {"redirect_uris": ["http://localhost:3030/cb"], "client_name": "SDK", "scope": "read"}
    if method != "document":
        described["token_endpoint_auth_method"] = method
    memory, links = Memory(), list[str]()

    async def redirected(url: str) -> None:
        links.append(url)

    async def called_back() -> AuthorizationCodeResult:
        await asyncio.to_thread(browser.open, links[-1])
        answer = answer_in(await asyncio.to_thread(browser.submit))
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

    async def main() -> None:
        provider = OAuthClientProvider(
            f"{gateway.url}/mcp",
            OAuthClientMetadata.model_validate(described),
            memory,
            redirected,
            called_back,
            client_metadata_url=CIMD if method == "document" else None,
        )
        async with httpx2.AsyncClient(auth=provider) as client:
            assert (await client.get(f"{gateway.url}/mcp")).json() == {"subject": "local", "scopes": ["read"]}
            first = memory.tokens
            provider.context.token_expiry_time = 1.0
            assert (await client.get(f"{gateway.url}/mcp")).status_code == 200
            assert memory.tokens != first
        assert len(links) == 1, "the second request refreshed without the user"

    asyncio.run(main())
    assert parse_qs(urlsplit(links[0]).query)["resource"] == [f"{gateway.url}/mcp"]
    assert memory.info
    assert (memory.info.client_id == CIMD) is (method == "document")
