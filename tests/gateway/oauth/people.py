"""A client application and a person at a browser, each step by hand, so that each can be done wrong."""

from __future__ import annotations

import hashlib
import html
import re
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2

from tests.gateway.oauth.server import PASSPHRASE, Gateway

REDIRECT = "http://127.0.0.1:4711/callback"
VERIFIER = "v" * 64
_FIELD = re.compile(r'name="form" value="([^"]+)"')


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def answer_in(response: httpx2.Response) -> dict[str, str]:
    """The parameters of a redirect."""
    assert response.status_code == 303, response.text
    return dict(parse_qsl(urlsplit(response.headers["location"]).query, strict_parsing=True))


class Browser:
    """A person at a browser with its own cookies."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.http = gateway.connect()
        self.page: httpx2.Response | None = None

    def open(self, url: str) -> httpx2.Response:
        """Follow a link of a client."""
        self.page = self.http.get(url)
        return self.page

    @property
    def form(self) -> str:
        """The token in the form of the page."""
        assert self.page is not None
        found = _FIELD.search(self.page.text)
        assert found, self.page.text
        return html.unescape(found[1])

    def submit(self, headers: dict[str, str] | None = None, **changes: str | None) -> httpx2.Response:
        """Send the form. `changes` replace fields; None leaves one out."""
        fields: dict[str, str | None] = {
            "form": None if "form" in changes else self.form,
            "name": "local",
            "passphrase": PASSPHRASE,
            "scope_read": "yes",
            "scope_trade": "yes",
            "scope_admin": "yes",
            "action": "allow",
            **changes,
        }
        data = {name: value for name, value in fields.items() if value is not None}
        sent = {"Origin": self.gateway.url} if headers is None else headers
        self.page = self.http.post("/authorize/consent", data=data, headers=sent)
        return self.page


class App:
    """A registered client."""

    def __init__(self, gateway: Gateway, **metadata: Any) -> None:
        self.gateway = gateway
        self.http = gateway.connect()
        self.redirect_uri = metadata.get("redirect_uris", [REDIRECT])[0]
        answer = self.register(**metadata)
        assert answer.status_code == 201, answer.text
        self.info = answer.json()
        self.id: str = self.info["client_id"]

    def register(self, **metadata: Any) -> httpx2.Response:
        described = {
            "client_name": "An app",
            "redirect_uris": [REDIRECT],
            "token_endpoint_auth_method": "none",
            **metadata,
        }
        return self.http.post("/register", json=described)

    def link(self, **changes: str | None) -> str:
        """The URL to which it sends its user."""
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "a state",
            "scope": "read trade",
            "resource": f"{self.gateway.url}/mcp",
            **changes,
        }
        return "/authorize?" + urlencode({name: value for name, value in asked.items() if value is not None})

    def code(self, **changes: str | None) -> str:
        """A code for which a user gave consent."""
        person = Browser(self.gateway)
        assert person.open(self.link(**changes)).status_code == 200, person.page.text if person.page else ""
        return answer_in(person.submit())["code"]

    def exchange(self, code: str, **changes: str | None) -> httpx2.Response:
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "code_verifier": VERIFIER,
            **changes,
        }
        return self.post("/token", **asked)

    def refresh(self, token: str, **changes: str | None) -> httpx2.Response:
        return self.post("/token", **{"grant_type": "refresh_token", "refresh_token": token, **changes})

    def post(self, path: str, **fields: str | None) -> httpx2.Response:
        data: dict[str, str | None] = {"client_id": self.id, **fields}
        return self.http.post(path, data={name: value for name, value in data.items() if value is not None})

    def tokens(self, **changes: str | None) -> dict[str, Any]:
        """New tokens."""
        answer = self.exchange(self.code(**changes))
        assert answer.status_code == 200, answer.text
        issued: dict[str, Any] = answer.json()
        return issued


def error_of(response: httpx2.Response, status: int = 400) -> str:
    """The OAuth error of a JSON answer."""
    assert response.status_code == status, response.text
    assert response.headers["cache-control"] == "no-store"
    return str(response.json()["error"])
