"""Attacks on the token endpoint and with tokens, each refused."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openbell.stores.access import users
from tests.gateway.oauth.people import VERIFIER, App, challenge_of, error_of
from tests.gateway.oauth.server import Gateway

FORM = "application/x-www-form-urlencoded"

# Codes


@pytest.mark.parametrize(
    "verifier", ["w" * 64, VERIFIER[:-1], "v" * 42, "v" * 129, "v" * 63 + "é", "v" * 63 + "\n", challenge_of(VERIFIER)]
)
def test_wrong_or_unfit_verifier(app: App, verifier: str) -> None:
    code = app.code()
    assert error_of(app.exchange(code, code_verifier=verifier)) == "invalid_grant"
    assert app.exchange(code).status_code == 200, "the client itself can still use it"


def test_short_verifier_that_fits_its_challenge(app: App) -> None:
    assert (
        error_of(app.exchange(app.code(code_challenge=challenge_of("short")), code_verifier="short")) == "invalid_grant"
    )


def test_verifier_missing(app: App) -> None:
    assert error_of(app.exchange(app.code(), code_verifier=None)) == "invalid_request"


def test_code_replay_revokes_what_it_gave(gateway: Gateway, app: App) -> None:
    code = app.code()
    tokens = app.exchange(code).json()
    assert gateway.asks(tokens["access_token"]).status_code == 200
    assert error_of(app.exchange(code)) == "invalid_grant"
    assert gateway.asks(tokens["access_token"]).status_code == 401
    assert error_of(app.refresh(tokens["refresh_token"])) == "invalid_grant"


def test_code_replay_at_once(gateway: Gateway, app: App) -> None:
    code = app.code()
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: app.exchange(code), range(6)))
    assert sorted(answer.status_code for answer in answers).count(200) <= 1
    for answer in answers:
        if answer.status_code == 200:
            assert gateway.asks(answer.json()["access_token"]).status_code == 401, "the replay has revoked it"


def test_code_replay_at_two_gateways(tmp_path: Path, gateway: Gateway, app: App) -> None:
    with Gateway(tmp_path, clock=gateway.clock) as second:
        code, there = app.code(), second.connect()
        form = {"client_id": app.id, "grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        assert app.exchange(code).status_code == 200
        answer = there.post("/token", data={**form, "resource": f"{gateway.url}/mcp"})
        assert answer.json()["error"] in {"invalid_grant", "invalid_target"}


def test_code_of_another_client(gateway: Gateway, app: App) -> None:
    code = app.code()
    assert error_of(App(gateway).exchange(code)) == "invalid_grant"
    assert app.exchange(code).status_code == 200, "a stranger cannot spoil it"


def test_code_that_is_too_old(gateway: Gateway, app: App) -> None:
    code = app.code()
    gateway.clock.advance(60)
    assert error_of(app.exchange(code)) == "invalid_grant"


@pytest.mark.parametrize(
    "code", ["x", "obc_", "obc_" + "x" * 43, "oba_" + "x" * 43, "obc_" + "x" * 9000, "' OR 1=1 --"]
)
def test_code_that_was_made_up(app: App, code: str) -> None:
    assert error_of(app.exchange(code)) == "invalid_grant"


def test_redirect_mismatch_at_the_token_endpoint(app: App) -> None:
    assert error_of(app.exchange(app.code(), redirect_uri="https://evil.example/cb")) == "invalid_grant"


def test_scope_escalation_at_the_token_endpoint(app: App) -> None:
    assert error_of(app.exchange(app.code(scope="read"), scope="read trade")) == "invalid_scope"


def test_audience_escalation_at_the_token_endpoint(gateway: Gateway, app: App) -> None:
    code = app.code()
    for resource in (gateway.url, f"{gateway.url}/portfolio/mcp", "https://elsewhere.example/mcp"):
        assert error_of(app.exchange(code, resource=resource)) == "invalid_target"


# Refresh tokens


def test_refresh_reuse_revokes_the_family(gateway: Gateway, app: App) -> None:
    stolen = app.tokens()["refresh_token"]
    second = app.refresh(stolen).json()
    third = app.refresh(second["refresh_token"]).json()
    assert error_of(app.refresh(stolen)) == "invalid_grant"
    assert error_of(app.refresh(third["refresh_token"])) == "invalid_grant"
    for tokens in (second, third):
        assert gateway.asks(tokens["access_token"]).status_code == 401


def test_refresh_reuse_after_the_time_for_a_retry(gateway: Gateway, app: App) -> None:
    stolen = app.tokens()["refresh_token"]
    tokens = app.refresh(stolen).json()
    gateway.clock.advance(11)
    assert error_of(app.refresh(stolen)) == "invalid_grant"
    assert gateway.asks(tokens["access_token"]).status_code == 401


def test_refresh_reuse_for_something_else_is_no_retry(gateway: Gateway, app: App) -> None:
    stolen = app.tokens()["refresh_token"]
    tokens = app.refresh(stolen, scope="read").json()
    assert error_of(app.refresh(stolen, scope="read trade")) == "invalid_grant"
    assert gateway.asks(tokens["access_token"]).status_code == 401


def test_refresh_at_once_begins_one_line_of_tokens(app: App) -> None:
    token = app.tokens()["refresh_token"]
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: app.refresh(token), range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1
    assert len({answer.json()["access_token"] for answer in answers}) == 1


def test_refresh_by_another_client(gateway: Gateway, app: App) -> None:
    token = app.tokens()["refresh_token"]
    assert error_of(App(gateway).refresh(token)) == "invalid_grant"
    assert app.refresh(token).status_code == 200


@pytest.mark.parametrize("scope", ["admin", "read trade admin", "root"])
def test_scope_escalation_at_refresh(app: App, scope: str) -> None:
    token = app.tokens()["refresh_token"]
    assert error_of(app.refresh(token, scope=scope)) == "invalid_scope"
    assert app.refresh(token).json()["scope"] == "read trade", "the token was not used"


def test_audience_escalation_at_refresh(gateway: Gateway, app: App) -> None:
    token = app.tokens()["refresh_token"]
    for resource in (gateway.url, f"{gateway.url}/portfolio/mcp"):
        assert error_of(app.refresh(token, resource=resource)) == "invalid_target"


def test_an_access_token_does_not_refresh(app: App) -> None:
    assert error_of(app.refresh(app.tokens()["access_token"])) == "invalid_grant"


def test_a_refresh_token_after_its_user_was_removed(gateway: Gateway, app: App) -> None:
    token = app.tokens()["refresh_token"]
    gateway.run(gateway.store.write(lambda connection: users.remove(connection, "local", gateway.clock.epoch())))
    assert error_of(app.refresh(token)) == "invalid_grant"


# Access tokens


def test_token_of_one_endpoint_at_another(gateway: Gateway, app: App) -> None:
    token = app.tokens()["access_token"]
    answer = gateway.asks(token, "/portfolio/mcp")
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_token_of_another_gateway(tmp_path: Path, app: App) -> None:
    with Gateway(tmp_path / "other") as other:
        other.add_user()
        assert other.asks(app.tokens()["access_token"]).status_code == 401


def test_token_of_a_gateway_with_another_url_on_the_same_store(tmp_path: Path, app: App) -> None:
    with Gateway(tmp_path) as other:
        assert other.asks(app.tokens(resource=app.gateway.url)["access_token"]).status_code == 401


def test_token_in_a_query_string(gateway: Gateway, app: App) -> None:
    assert gateway.get(f"/mcp?access_token={app.tokens()['access_token']}").status_code == 401


def test_expired_token(gateway: Gateway, app: App) -> None:
    token = app.tokens()["access_token"]
    gateway.clock.advance(899)
    assert gateway.asks(token).status_code == 200
    gateway.clock.advance(1)
    assert gateway.asks(token).status_code == 401


@pytest.mark.parametrize("change", ["removed", "other passphrase", "fewer scopes"])
def test_token_of_a_user_who_has_changed(gateway: Gateway, app: App, change: str) -> None:
    token = app.tokens()["access_token"]
    assert gateway.asks(token).status_code == 200
    if change == "removed":
        gateway.run(gateway.store.write(lambda connection: users.remove(connection, "local", 0.0)))
    else:
        gateway.add_user(
            scopes="read" if change == "fewer scopes" else "read trade admin", passphrase="another one, longer"
        )
    assert gateway.asks(token).status_code == 401


@pytest.mark.parametrize(
    "token",
    ["x", "oba_", "oba_" + "x" * 43, "oba_" + "x" * 42 + "!", "oba_" + "x" * 30_000, "obs_" + "x" * 43, "null"],
)
def test_garbage_and_oversized_tokens(gateway: Gateway, token: str) -> None:
    assert gateway.asks(token).status_code in {400, 401}


def test_other_secrets_are_not_access_tokens(gateway: Gateway, app: App) -> None:
    tokens = app.tokens()
    for secret in (tokens["refresh_token"], app.code(), app.id, "obs_" + tokens["access_token"][4:]):
        assert gateway.asks(secret).status_code == 401


def test_the_hash_of_a_token_is_not_a_token(gateway: Gateway, app: App, tmp_path: Path) -> None:
    token = app.tokens()["access_token"]
    for file in tmp_path.iterdir():
        assert token.encode() not in file.read_bytes()
    from openbell.gateway.oauth.secret_texts import digest

    assert gateway.asks(digest(token)).status_code == 401


# Revocation


def test_revocation_by_another_client(gateway: Gateway, app: App) -> None:
    token = app.tokens()["access_token"]
    assert App(gateway).post("/revoke", token=token).status_code == 200, "it learns nothing"
    assert gateway.asks(token).status_code == 200


def test_revocation_of_garbage(app: App) -> None:
    for token in ("x", "oba_" + "x" * 43, "é"):
        assert app.post("/revoke", token=token).status_code == 200
    assert error_of(app.post("/revoke")) == "invalid_request"


# Clients


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def test_client_secret_wrong_or_missing(gateway: Gateway) -> None:
    app = App(gateway, token_endpoint_auth_method="client_secret_post")
    code = app.code()
    for changes in ({}, {"client_secret": "wrong"}, {"client_secret": "obk_" + "x" * 43}):
        assert error_of(app.exchange(code, **changes), 401) == "invalid_client"
    assert app.exchange(code, client_secret=app.info["client_secret"]).status_code == 200


def test_client_that_is_unknown_reads_like_a_wrong_secret(gateway: Gateway) -> None:
    app = App(gateway, token_endpoint_auth_method="client_secret_post")
    wrong = app.exchange("x", client_secret="wrong")
    unknown = app.exchange("x", client_id="nobody", client_secret="wrong")
    assert (wrong.status_code, wrong.json()) == (unknown.status_code, unknown.json())


def test_public_client_with_a_secret(app: App) -> None:
    assert error_of(app.exchange(app.code(), client_secret="something"), 401) == "invalid_client"


def test_client_missing(app: App) -> None:
    assert error_of(app.exchange(app.code(), client_id=None), 401) == "invalid_client"


def test_client_authenticated_in_two_ways(gateway: Gateway, app: App) -> None:
    own = App(gateway, token_endpoint_auth_method="client_secret_basic")
    secret = own.info["client_secret"]
    form = {"grant_type": "refresh_token", "refresh_token": "x"}
    for extra in ({"client_secret": secret}, {"client_id": app.id}):
        answer = own.http.post("/token", data={**form, **extra}, headers=basic(own.id, secret))
        assert error_of(answer) == "invalid_request"


@pytest.mark.parametrize("header", ["Basic", "Basic !!!", "Basic eA==", "Bearer x", "Basic /w==", "Basic eA== eA=="])
def test_client_with_a_broken_header(app: App, header: str) -> None:
    answer = app.http.post("/token", data={"grant_type": "refresh_token"}, headers={"Authorization": header})
    assert error_of(answer, 401) == "invalid_client"
    assert answer.headers["www-authenticate"].startswith("Basic")


# Requests


@pytest.mark.parametrize("kind", ["password", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer", "x"])
def test_other_grant_types(app: App, kind: str) -> None:
    form = {"username": "local", "password": "x", "assertion": "x"}
    assert error_of(app.post("/token", grant_type=kind, **form)) == "unsupported_grant_type"


@pytest.mark.parametrize("path", ["/token", "/revoke", "/register"])
def test_get_on_endpoints_that_change_something(gateway: Gateway, app: App, path: str) -> None:
    query = f"?grant_type=authorization_code&code={app.code()}&client_id={app.id}&code_verifier={VERIFIER}"
    assert gateway.get(path + query).status_code == 405


def test_parameters_in_the_query_of_the_token_endpoint(app: App) -> None:
    query = f"?grant_type=authorization_code&code={app.code()}&code_verifier={VERIFIER}"
    assert error_of(app.post("/token" + query)) == "invalid_request"


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", "", "x" * 500])
def test_wrong_content_type(app: App, kind: str) -> None:
    body = f"client_id={app.id}&grant_type=refresh_token&refresh_token=x"
    answer = app.http.post("/token", content=body, headers={"Content-Type": kind})
    assert error_of(answer, 415) == "invalid_request"


@pytest.mark.parametrize("name", ["client_id", "grant_type", "code", "code_verifier", "resource", "unknown"])
def test_duplicated_parameter(app: App, name: str) -> None:
    fields = {"client_id": app.id, "grant_type": "authorization_code", "code": app.code(), "code_verifier": VERIFIER}
    body = str(httpx2.QueryParams(fields)) + f"&{name}=x&{name}=x"
    answer = app.http.post("/token", content=body, headers={"Content-Type": FORM})
    assert error_of(answer) == "invalid_request"


@pytest.mark.parametrize("path", ["/token", "/revoke", "/register", "/authorize/consent"])
def test_body_too_large(gateway: Gateway, path: str) -> None:
    kind = "application/json" if path == "/register" else FORM
    headers = {"Content-Type": kind, "Origin": gateway.url}

    def parts() -> Any:
        for _ in range(20):
            yield b"x" * 1000

    for content in (b"x" * 20_000, parts()):
        assert gateway.connect().post(path, content=content, headers=headers).status_code == 413


@pytest.mark.parametrize("body", [b"\xff\xfe", b"client_id=%ff", b"client_id=%00", b"&" * 100, b"a=1&" * 9, b""])
def test_body_that_cannot_be_read(app: App, body: bytes) -> None:
    answer = app.http.post("/token", content=body, headers={"Content-Type": FORM})
    assert answer.status_code in {400, 401}
    assert answer.json()["error"] in {"invalid_request", "invalid_client"}


def test_answers_are_not_cached_and_not_shared(app: App) -> None:
    answer = app.exchange(app.code())
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers


def test_attack_a_stolen_refresh_token_is_not_refreshed_for_ever(gateway: Gateway, app: App) -> None:
    """A consent ends 90 days after it was given, however often its tokens were refreshed."""
    tokens = app.tokens()
    for _ in range(4):
        gateway.clock.advance(20 * 86_400)
        tokens = app.refresh(tokens["refresh_token"]).json()
    gateway.clock.advance(10 * 86_400 - 60)
    last = app.refresh(tokens["refresh_token"]).json()
    assert last["expires_in"] <= 60
    gateway.clock.advance(61)
    assert error_of(app.refresh(last["refresh_token"])) == "invalid_grant"
    assert gateway.asks(last["access_token"]).status_code == 401
