"""Security headers of HTML pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from openbell.gateway.app import guarded
from tests.gateway.guard.serving import Served, settings_of

NAMES = {
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "referrer-policy",
    "cache-control",
    "cross-origin-resource-policy",
    "permissions-policy",
}


async def app(scope: Scope, _receive: Receive, send: Send) -> None:
    kind = {"/page": b"text/html; charset=utf-8", "/own": b"TEXT/HTML"}.get(scope["path"], b"application/json")
    own = [(b"Content-Security-Policy", b"default-src 'none'; form-action https://client.example")]
    headers = [(b"content-type", kind), (b"content-length", b"2"), *(own if scope["path"] == "/own" else [])]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.mark.parametrize("public_url", ["", "http://localhost:8742", "https://desk.example.com"])
def test_a_page_has_all_headers_and_hsts_only_with_https(tmp_path: Path, public_url: str) -> None:
    settings = settings_of(tmp_path, public_url=public_url)
    with Served(lambda port: guarded(app, settings, port), settings) as served:
        page = served.get("/page")
        assert {name for name, _ in page.headers} >= NAMES
        assert "frame-ancestors 'none'" in str(page["content-security-policy"])
        assert "default-src 'none'" in str(page["content-security-policy"])
        assert (page["x-content-type-options"], page["cache-control"]) == ("nosniff", "no-store")
        assert (page["strict-transport-security"] is not None) is public_url.startswith("https")
        # A form of a page with `no-referrer` would have the origin null, which is refused.
        assert page["referrer-policy"] == "same-origin"

        own = served.get("/own")
        assert own["content-security-policy"] == "default-src 'none'; form-action https://client.example"
        assert own["x-frame-options"] == "DENY"
        assert not NAMES & {name for name, _ in served.get("/json").headers}
