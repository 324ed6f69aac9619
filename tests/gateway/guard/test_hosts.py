"""DNS rebinding and other requests that were not meant for this gateway, on a real socket: each is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from openbell.gateway.app import guarded
from openbell.gateway.guard.hosts import Hosts, allowed_by
from tests.gateway.guard.serving import Echo, Served, settings_of

APP = Echo(headers=[(b"access-control-allow-origin", b"*"), (b"Access-Control-Allow-Headers", b"*"), (b"x-kept", b"1")])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = settings_of(
        tmp_path_factory.mktemp("home"),
        port=0,
        public_url="https://desk.example.com",
        allowed_hosts="desk.lan:8742",
        allowed_origins="https://app.example.com,vscode-webview://panel",
    )
    with Served(lambda port: guarded(APP, settings, port), settings) as made:
        yield made


def refused(answer: Any, status: int, reason: str, says: str = "") -> None:
    assert (answer.status, answer.json["error"]) == (status, reason)
    assert says in answer.json["message"]


@pytest.fixture(autouse=True)
def nothing_refused_reaches_the_application(request: pytest.FixtureRequest) -> Iterator[None]:
    before = len(APP.seen)
    yield
    if "attack" in request.node.name:
        assert len(APP.seen) == before


def test_the_gateways_own_names_are_accepted(served: Served) -> None:
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert served.get(host=f"{name}:{served.port}").status == 200
    for host in ("desk.example.com", "desk.example.com:443", "desk.lan:8742"):
        assert served.get(host=host).status == 200


def test_upper_case_is_the_same_name(served: Served) -> None:
    assert served.get(host=f"LocalHost:{served.port}").status == 200
    refused(served.get(host=f"EVIL.example:{served.port}"), 421, "host_not_allowed")


def test_attack_foreign_host(served: Served) -> None:
    answer = served.get(host=f"evil.example:{served.port}")
    refused(answer, 421, "host_not_allowed", "OPENBELL_ALLOWED_HOSTS")
    assert f'"evil.example:{served.port}"' in answer.json["message"]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1.:{port}",
        "localhost.:{port}",
        "localhost.",
        "desk.example.com.",
        "user@127.0.0.1:{port}",
        "127.0.0.1:{port}@evil.example",
        "127.0.0.1",
        "localhost:80",
        "127.0.0.1:{other}",
        "127.0.0.1:0{port}",
        "0.0.0.0:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "127.0.0.1:{port}.evil.example",
        "localhost:{port} evil.example",
        "localhost:{port},evil.example",
        "desk.lan",
        "desk.example.com:8742",
        "evil.desk.example.com",
        "",
    ],
)
def test_attack_host_that_only_resembles_an_allowed_one(served: Served, host: str) -> None:
    refused(served.get(host=host.format(port=served.port, other=served.port + 1)), 421, "host_not_allowed")


def test_attack_no_host(served: Served) -> None:
    assert served.send(b"GET /mcp HTTP/1.1\r\n\r\n").status == 400
    refused(served.send(b"GET /mcp HTTP/1.0\r\n\r\n"), 400, "no_host")


def test_attack_two_hosts(served: Served) -> None:
    for second in (served.host, "evil.example"):
        assert served.get("/mcp", f"Host: {second}").status == 400
        old = f"GET /mcp HTTP/1.0\r\nHost: {served.host}\r\nHost: {second}\r\n\r\n"
        assert served.send(old.encode()).status == 400


def test_attack_two_hosts_behind_a_server_that_passes_them_on(tmp_path: Path) -> None:
    """h11 refuses them itself; another HTTP server may not."""
    guard = Hosts(APP, allowed_by(settings_of(tmp_path)))
    headers = [(b"host", b"localhost:8742"), (b"host", b"localhost:8742")]
    scope = {"type": "http", "method": "GET", "raw_path": b"/mcp", "query_string": b"", "headers": headers}
    found = guard.refusal(scope)
    assert found is not None
    assert (found.status, found.reason) == (400, "no_host")
    scope["headers"] = headers[:1]
    assert guard.refusal(scope) is None


def test_attack_forwarded_host_changes_nothing(served: Served) -> None:
    answer = served.get(
        "/mcp", f"X-Forwarded-Host: {served.host}", f"Forwarded: host={served.host}", host="evil.example"
    )
    refused(answer, 421, "host_not_allowed")


@pytest.mark.parametrize("target", ["http://evil.example/mcp", "https://desk.example.com/mcp", "evil.example:443", "*"])
def test_attack_target_in_absolute_form(served: Served, target: str) -> None:
    refused(served.get(target), 400, "bad_target")


def test_own_and_listed_origins_are_accepted(served: Served) -> None:
    for origin in (
        f"http://{served.host}",
        f"http://localhost:{served.port}",
        "https://desk.example.com",
        "http://desk.lan:8742",
        "https://app.example.com",
        "vscode-webview://panel",
    ):
        assert served.get("/mcp", f"Origin: {origin}").status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "",
        "http://desk.example.com",
        "https://app.example.com.evil.example",
        "https://app.example.com:8443",
        "https://app.example.com/",
        "http://app.example.com",
        "https://APP.example.com",
        "https://localhost:{port}",
        "http://127.0.0.1:{other}",
        "http://localhost",
        "file://",
        "https://evil.example https://app.example.com",
    ],
)
def test_attack_foreign_origin(served: Served, origin: str) -> None:
    answer = served.get("/mcp", f"Origin: {origin.format(port=served.port, other=served.port + 1)}")
    refused(answer, 403, "origin_not_allowed", "OPENBELL_ALLOWED_ORIGINS")


def test_attack_two_origins(served: Served) -> None:
    answer = served.get("/mcp", "Origin: https://app.example.com", "Origin: https://evil.example")
    refused(answer, 403, "origin_not_allowed")


def test_host_is_judged_before_origin_and_path(served: Served) -> None:
    refused(served.get("/../x", "Origin: null", host="evil.example"), 421, "host_not_allowed")


def test_cors_is_closed(served: Served) -> None:
    preflight = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type")
    refused(served.get("/mcp", "Origin: https://evil.example", *preflight, method="OPTIONS"), 403, "origin_not_allowed")
    answer = served.get("/mcp", "Origin: https://app.example.com", *preflight, method="OPTIONS")
    refused(answer, 405, "no_cors")
    for found in (answer, served.get("/mcp", "Origin: https://app.example.com")):
        assert not [name for name, _ in found.headers if name.startswith("access-control-")]
    assert served.get()["x-kept"] == "1"


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/mcp/../admin",
        "/mcp/..",
        "/./mcp",
        "/mcp/..;/admin",
        "/%2e%2e/etc/passwd",
        "/%2E%2E/x",
        "/.%2e/x",
        "//mcp",
        "//evil.example/mcp",
        "/portfolio//mcp",
        "/portfolio%2fmcp",
        "/portfolio%2Fmcp",
        "/portfolio%5cmcp",
        "/portfolio\\mcp",
        "/%252e%252e/x",
        "/mcp%00",
        "/mcp%0d%0aX-Bad:%201",
        "/mcp%7f",
        "/mcp%",
        "/mcp%2",
        "/mcp%zz",
    ],
)
def test_attack_path_traversal(served: Served, path: str) -> None:
    refused(served.get(path), 400, "bad_target")


@pytest.mark.parametrize(
    "path", ["/mcp", "/portfolio/mcp", "/.well-known/oauth-protected-resource/mcp", "/a..b", "/q/%C3%A9"]
)
def test_plain_paths_are_accepted(served: Served, path: str) -> None:
    assert served.get(path).status == 200


@pytest.mark.parametrize("target", [b"/mcp\x00", b"/mcp\xff", b"/m cp"])
def test_attack_null_bytes_and_garbage_in_the_request_line(served: Served, target: bytes) -> None:
    assert served.send(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, served.host.encode())).status == 400


def test_attack_null_byte_in_a_header(served: Served) -> None:
    assert served.get("/mcp", "X-Thing: a\x00b").status == 400


def test_attack_huge_target(served: Served) -> None:
    refused(served.get("/" + "a" * 9000), 414, "target_too_long")
    refused(served.get("/mcp?" + "a" * 9000), 414, "target_too_long")


def test_attack_huge_headers(served: Served) -> None:
    """Headers that arrive at once are complete when h11 counts them: the guard counts them too."""
    for headers in (
        ["X-Big: " + "a" * 20_000],
        [f"X-{n}: {'a' * 200}" for n in range(90)],
        [f"X-{n}: a" for n in range(120)],
    ):
        assert served.get("/mcp", *headers).status in {400, 431}


def test_attack_headers_without_end(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(f"GET /mcp HTTP/1.1\r\nHost: {served.host}\r\nX-Big: ".encode())
        try:
            for _ in range(1000):
                connection.sendall(b"a" * 8192)
        except (BrokenPipeError, ConnectionResetError):
            return
    raise AssertionError("8 MB of a header were taken")


def test_an_upgrade_to_a_websocket_is_a_request_like_any_other(served: Served) -> None:
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAA")
    answer = served.get("/mcp", *upgrade, "Origin: https://evil.example")
    refused(answer, 403, "origin_not_allowed")
    assert served.get("/mcp", *upgrade).status == 200


class TestLists:
    def test_on_loopback_its_names_with_the_port(self, tmp_path: Path) -> None:
        allowed = allowed_by(settings_of(tmp_path))
        assert allowed.hosts == {b"127.0.0.1:8742", b"localhost:8742", b"[::1]:8742"}
        assert allowed.origins == {b"http://" + host for host in allowed.hosts}

    def test_the_default_port_may_be_left_out(self, tmp_path: Path) -> None:
        assert b"localhost" in allowed_by(settings_of(tmp_path, port=80)).hosts

    def test_every_interface_is_no_name(self, tmp_path: Path) -> None:
        for host in ("0.0.0.0", "::"):
            allowed = allowed_by(settings_of(tmp_path, host=host, allowed_hosts="desk.lan:8742"))
            assert allowed.hosts == {b"127.0.0.1:8742", b"localhost:8742", b"[::1]:8742", b"desk.lan:8742"}

    def test_another_address_is_itself_only(self, tmp_path: Path) -> None:
        given = settings_of(tmp_path, host="192.168.1.5", public_url="https://[2001:db8::1]:8443")
        allowed = allowed_by(given)
        assert allowed.hosts == {b"192.168.1.5:8742", b"[2001:db8::1]:8443"}
        assert allowed.origins == {b"http://192.168.1.5:8742", b"https://[2001:db8::1]:8443"}
