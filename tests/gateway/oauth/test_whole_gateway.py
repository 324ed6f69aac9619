"""OAuth at the whole gateway: its settings, its audit log, the commands at the shell, and reading without a token."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from openbell.desk.settings.access import make_access
from openbell.gateway.guard.audit import NAME
from openbell.gateway.oauth.passphrases import hashed
from openbell.stores.access import users
from openbell.stores.access.users import User
from tests.client import run
from tests.gateway.oauth.people import App, Browser, answer_in
from tests.gateway.oauth.server import CHEAP, PASSPHRASE, Gateway
from tests.gateway.streamable.gateways import Inside, message
from tests.waiting import wait_for

LIST = message("tools/call", {"name": "list_indicators", "arguments": {}})


class Site:
    """A whole gateway, with what clients and people need of it."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        self.url = f"http://127.0.0.1:{inside.port}"
        self._clients: list[httpx2.Client] = []

    def connect(self) -> httpx2.Client:
        self._clients.append(httpx2.Client(base_url=self.url, timeout=60))
        return self._clients[-1]

    def close(self) -> None:
        for each in self._clients:
            each.close()

    def lines(self, **wanted: str) -> list[dict[str, Any]]:
        """The lines of the audit log with these values."""
        file = self.inside.settings.home / NAME
        found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [each for each in found if wanted.items() <= each.items()]


def add_user(inside: Inside) -> None:
    async def work() -> None:
        store = make_access(inside.settings)
        user = User("ann", hashed(PASSPHRASE, CHEAP), frozenset({"read", "trade"}))
        await store.write(partial(users.put, user=user, now=1.0))
        await store.close()

    asyncio.run(work())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    trusted = "https://hooks.internal.example:9443"
    with Inside(tmp_path, RATE_SIGNIN="1", BURST_SIGNIN="3", WEBHOOK_ORIGINS=trusted) as made:
        add_user(made)
        found = Site(made)
        yield found
        found.close()


def app_of(site: Site) -> App:
    return App(cast("Gateway", site), client_name="An app")


def sign_in(app: App, **changes: Any) -> httpx2.Response:
    person = Browser(app.gateway)
    assert person.open(app.link()).status_code == 200
    return person.submit(**{"name": "ann", **changes})


def test_attack_sign_ins_of_an_address_are_limited_right_or_wrong(site: Site) -> None:
    """OPENBELL_RATE_SIGNIN and OPENBELL_BURST_SIGNIN bound them before any passphrase is compared."""
    app = app_of(site)
    answers = [sign_in(app) for _ in range(4)]
    assert [each.status_code for each in answers] == [303, 303, 303, 429]
    assert int(answers[3].headers["retry-after"]) <= 60
    assert "Try again in" in answers[3].text


def test_sign_ins_consents_and_calls_are_in_the_audit_log_with_client_and_token(site: Site) -> None:
    app = app_of(site)
    assert sign_in(app, passphrase="wrong wrong wrong").status_code == 403
    assert sign_in(app, name="my secret passphrase", passphrase="ann").status_code == 403
    assert sign_in(app, action="deny").status_code == 303
    assert app.post("/token", grant_type="authorization_code", client_id="nobody").status_code in {400, 401}
    tokens = app.exchange(answer_in(sign_in(app))["code"]).json()
    call = site.connect().post("/mcp", json=LIST, headers={"Authorization": f"Bearer {tokens['access_token']}"})
    assert call.status_code == 200
    assert app.exchange("obc_" + "x" * 43).status_code == 400
    site.inside.post(LIST, "reader")
    wait_for(lambda: len(site.lines(server="chartgen")) == 2, "the audit log")
    seen = [(each["tool"], each["outcome"], each["principal"]) for each in site.lines(server="oauth", client=app.id)]
    assert seen == [
        ("register", "ok", ""),
        ("sign_in", "refused", "ann"),
        ("sign_in", "refused", "an unknown user"),
        ("consent", "refused", ""),
        ("sign_in", "ok", "ann"),
        ("consent", "ok", "ann"),
        ("token", "ok", "ann"),
        ("token", "refused", ""),
    ]
    refused = [each["tool"] for each in site.lines(server="oauth", outcome="refused") if not each.get("client")]
    assert refused == ["token"]
    assert site.lines(server="chartgen", principal="ann", client=app.id)
    assert site.lines(server="chartgen", principal="alice", token="reader")
    text = (site.inside.settings.home / NAME).read_text()
    assert "my secret passphrase" not in text
    assert PASSPHRASE not in text and tokens["access_token"] not in text and tokens["refresh_token"] not in text


def test_forms_and_revocations_that_are_refused_are_in_the_audit_log(site: Site) -> None:
    """From another site, sent again, made up, and by a client with a wrong secret: each leaves a line."""
    app = app_of(site)
    person = Browser(app.gateway)
    person.open(app.link())
    form = person.form
    foreign = {"Origin": site.url, "Sec-Fetch-Site": "cross-site"}
    assert person.submit(foreign, form=form, name="ann").status_code == 403
    assert person.submit(form=form, action="deny").status_code == 303
    assert person.submit(form=form, name="ann").status_code == 403
    assert person.submit(form="x" * 40, name="ann").status_code in {400, 403}
    assert app.post("/revoke", token="obr_" + "x" * 43, client_id="nobody").status_code == 401

    def seen() -> list[str]:
        return [each["tool"] for each in site.lines(server="oauth", outcome="refused") if not each.get("client")]

    wait_for(lambda: len(seen()) == 4, "the audit log")
    assert seen() == ["consent", "consent", "consent", "revoke"]


def test_consents_are_listed_and_revoked_at_the_shell(site: Site) -> None:
    home = site.inside.settings.home
    app = app_of(site)
    tokens = app.exchange(answer_in(sign_in(app))["code"]).json()
    listed = run(home, "consent", "list").stdout
    assert "ann" in listed and app.id in listed and "read,trade" in listed
    assert "\x1b" not in listed
    number = listed.split()[0]
    assert run(home, "consent", "revoke", "nothing").returncode == 1
    done = run(home, "consent", "revoke", number)
    assert (done.returncode, "revoked what ann allowed" in done.stdout) == (0, True)
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    wait_for(lambda: site.connect().post("/mcp", json=LIST, headers=headers).status_code == 401, "the revocation")
    assert app.refresh(tokens["refresh_token"]).status_code == 400
    assert "no consents" in run(home, "consent", "list").stdout


def test_attack_origins_of_webhooks_are_not_fetched_as_documents(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """An origin that the operator trusts for webhooks may be in a private network: strangers get nothing from it."""
    reached: list[Any] = []
    original = socket.getaddrinfo

    def resolve(host: Any, port: Any, *rest: Any, **options: Any) -> Any:
        if host == "hooks.internal.example":
            reached.append(port)
            return original("127.0.0.1", listener.getsockname()[1], *rest, **options)
        return original(host, port, *rest, **options)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        app = app_of(site)
        page = Browser(app.gateway).open(app.link(client_id="https://hooks.internal.example:9443/app.json"))
        assert page.status_code == 400
        assert reached
        with pytest.raises(TimeoutError):
            listener.accept()


def test_the_challenge_of_a_401_names_the_scope_to_ask_for(site: Site) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        answer = site.connect().post("/mcp", json=LIST, headers=headers)
        assert answer.status_code == 401
        assert 'scope="read"' in answer.headers["www-authenticate"]


def test_attack_a_flood_of_refusals_does_not_rotate_the_audit_log_away(tmp_path: Path) -> None:
    """Refusals of a caller are written one by one at first, then counted; the count is written when the gateway ends."""
    order = message("tools/call", {"name": "place_order", "arguments": {}})
    with Inside(tmp_path) as made:
        for _ in range(200):
            assert made.post(order, "reader").status == 403
    lines = Site(made).lines(principal="alice")
    written = [each for each in lines if each.get("outcome") == "refused"]
    assert 10 <= len(written) <= 40  # one more every 10 s
    assert written[0]["token"] == "reader"
    assert sum(each.get("refused_more", 0) for each in lines) == 200 - len(written)


# Reading without a token


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Inside]:
    with Inside(tmp_path, OPEN_READING="1", ALLOWED_ORIGINS="https://page.example") as made:
        yield made


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://page.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
    ],
)
def test_attack_a_web_page_reads_without_a_token(opened: Inside, headers: dict[str, str]) -> None:
    """A page in a browser on this machine could spend the operator's quota; with a token, an allowed origin may call."""
    assert opened.post(LIST, None, **headers).status == 403
    assert opened.request("GET", "/v3/tradingview/exchange/list", None, **headers).status == 403
    assert opened.post(LIST, None).status == 200
    own = f"http://{opened.host}"
    assert opened.post(LIST, None, Origin=own, Sec_Fetch_Site="same-origin").status == 200
    if headers.get("Origin") == "https://page.example":
        assert opened.post(LIST, "reader", **headers).status == 200


def test_attack_pictures_are_stored_without_a_token(opened: Inside) -> None:
    """Without a token nothing is written, at the chart API and by tools that can store."""
    drawn = {"symbol": "BINANCE:BTCUSDT", "interval": "1h"}
    stored = opened.post(drawn, None, "/v2/tradingview/advanced-chart/storage")
    assert stored.status == 401
    tool = message("tools/call", {"name": "generate_chart_image", "arguments": {"config": drawn}})
    assert opened.post(tool, None, "/chart-image/mcp").status in {401, 403}
    assert not list(opened.settings.home.rglob("*.png"))


def test_open_reading_is_refused_with_a_public_address(tmp_path: Path) -> None:
    done = run(tmp_path, "up", OPEN_READING="1", PUBLIC_URL="https://desk.example.com")
    assert done.returncode == 1
    assert "OPENBELL_OPEN_READING" in done.stderr and "OPENBELL_PUBLIC_URL" in done.stderr
