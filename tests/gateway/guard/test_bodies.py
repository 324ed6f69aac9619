"""Bodies that are too large, too slow or of two lengths, and slow headers, on a real socket: each is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from openbell.gateway.app import guarded
from openbell.gateway.guard import bodies
from tests.gateway.guard.serving import Answer, Echo, Served, is_closed, read, settings_of
from tests.waiting import wait_for

LIMIT = 100_000
SECONDS = 1.0
APP = Echo()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = settings_of(tmp_path_factory.mktemp("home"), body_limit=LIMIT, body_timeout=SECONDS)
    with Served(lambda port: guarded(APP, settings, port), settings, header_seconds=SECONDS) as made:
        yield made


def head(served: Served, *headers: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} /mcp HTTP/1.1", f"Host: {served.host}", *headers, "", ""]).encode()


def chunk(size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"a" * size)


def refused(answer: Answer, status: int, reason: str) -> None:
    assert (answer.status, answer.json["error"]) == (status, reason)
    assert answer["connection"] == "close"
    assert answer["x-request-id"]


def test_a_body_up_to_the_limit_is_read(served: Served) -> None:
    assert served.post(b"a" * LIMIT).json["size"] == LIMIT
    whole = head(served, "Transfer-Encoding: chunked") + chunk(LIMIT // 2) * 2 + b"0\r\n\r\n"
    assert served.send(whole).json["size"] == LIMIT


def test_a_request_without_a_body_is_left_alone(served: Served) -> None:
    assert served.get().json["size"] == 0
    assert served.post(b"").json["size"] == 0


def test_the_connection_is_kept_after_an_allowed_body(served: Served) -> None:
    with served.connect() as connection:
        for _ in range(3):
            connection.sendall(head(served, "Content-Length: 5") + b"hello")
            assert read(connection).json["size"] == 5


def test_responses_are_not_held_back(served: Served) -> None:
    """Without TCP_NODELAY the second packet of each response waits 40 ms for the client's acknowledgement of the first."""
    with served.connect() as connection:
        took = []
        for _ in range(20):
            began = time.perf_counter()
            connection.sendall(head(served, "Content-Length: 5") + b"hello")
            assert read(connection).json["size"] == 5
            took.append(time.perf_counter() - began)
    assert sorted(took)[10] < 0.03


def test_attack_declared_oversized_body_is_refused_before_it_is_sent(served: Served) -> None:
    before = len(APP.seen)
    refused(served.send(head(served, f"Content-Length: {LIMIT + 1}")), 413, "body_too_large")
    refused(served.send(head(served, "Content-Length: 99999999999999999999")), 413, "body_too_large")
    assert len(APP.seen) == before


def test_attack_expect_100_is_refused_without_a_continue(served: Served) -> None:
    answer = served.send(head(served, f"Content-Length: {LIMIT * 10}", "Expect: 100-continue"))
    refused(answer, 413, "body_too_large")


def test_attack_oversized_chunked_body_is_refused_before_its_end(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(head(served, "Transfer-Encoding: chunked"))
        connection.sendall(chunk(LIMIT // 2) * 3)
        refused(read(connection), 413, "body_too_large")
        assert is_closed(connection)


def test_attack_endless_chunked_body_is_cut_off(served: Served) -> None:
    sent = 0
    with served.connect() as connection, suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(head(served, "Transfer-Encoding: chunked"))
        while sent < 2**30:
            connection.sendall(chunk(65536))
            sent += 65536
    assert sent < 2**26


def test_a_client_that_reads_only_after_it_has_sent_everything_gets_the_refusal(served: Served) -> None:
    refused(served.post(b"a" * (8 * 2**20)), 413, "body_too_large")
    whole = head(served, "Transfer-Encoding: chunked") + chunk(2**20) * 8 + b"0\r\n\r\n"
    refused(served.send(whole), 413, "body_too_large")


def test_an_ordinary_client_reads_the_refusal_of_its_large_body(served: Served) -> None:
    for content in (b"a" * (5 * 2**20), iter([b"a" * 2**20] * 5)):
        answer = httpx2.post(f"http://{served.host}/mcp", content=content)
        assert (answer.status_code, answer.json()["error"]) == (413, "body_too_large")


def test_an_application_that_waits_for_a_refused_body_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app, settings = Echo(), settings_of(tmp_path, body_limit=LIMIT)
    with Served(lambda port: guarded(app, settings, port), settings) as served:
        with served.connect() as connection:
            connection.sendall(head(served, "Transfer-Encoding: chunked") + chunk(LIMIT + 1))
            refused(read(connection), 413, "body_too_large")
            assert is_closed(connection)
        wait_for(lambda: app.cut == 1, "the application")
        wait_for(lambda: not served.server.server_state.tasks, "the request to end")
    assert caplog.records == []  # its exception is not logged as an accident


def test_an_accident_of_the_application_is_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        raise RuntimeError("broken")

    settings = settings_of(tmp_path)
    with Served(lambda port: guarded(fail, settings, port), settings) as served:
        assert served.post(b"hello").status == 500
    assert "broken" in caplog.text


def test_attack_body_that_never_comes(served: Served) -> None:
    for declared in ("Content-Length: 100", "Transfer-Encoding: chunked"):
        began = time.monotonic()
        refused(served.send(head(served, declared)), 408, "body_too_slow")
        assert time.monotonic() - began >= SECONDS * 0.9


def test_attack_body_byte_by_byte(served: Served) -> None:
    """Each byte arrives at once, and the time for the whole body still ends."""
    began = time.monotonic()
    with served.connect() as connection:
        connection.sendall(head(served, "Content-Length: 50000"))
        connection.settimeout(0.02)
        while time.monotonic() - began < 30:
            connection.sendall(b"a")
            try:
                answer = read(connection)
                break
            except TimeoutError:
                continue
    refused(answer, 408, "body_too_slow")


def test_attack_body_below_the_slowest_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time for the whole body is long here, but the body makes too little progress."""
    monkeypatch.setattr(bodies, "_GRACE", 0.3)
    settings = settings_of(tmp_path, body_timeout=600)
    with Served(lambda port: guarded(Echo(), settings, port), settings) as served:
        refused(served.send(head(served, "Content-Length: 50000") + b"a" * 200), 408, "body_too_slow")


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: 5, 6",),
        ("Content-Length: -5",),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: 5 5",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding:\x0bchunked",),
        ("Transfer-Encoding : chunked",),
    ],
)
def test_attack_request_smuggling(served: Served, headers: tuple[str, ...]) -> None:
    """The request has two possible ends: it is refused, and the bytes after it are never a request."""
    before = len(APP.seen)
    with served.connect() as connection:
        smuggled = b"GET /smuggled HTTP/1.1\r\nHost: %s\r\n\r\n" % served.host.encode()
        connection.sendall(head(served, *headers) + b"0\r\n\r\n" + smuggled)
        assert read(connection).status in {400, 501}
        assert is_closed(connection)
    assert len(APP.seen) == before


def test_attack_broken_chunks(served: Served) -> None:
    for rest in (b"zz\r\nabc\r\n", b"-1\r\n", b"fffffffffffffffffffff\r\n", b"5\r\nabcdefgh\r\n0\r\n\r\n"):
        with served.connect() as connection:
            connection.sendall(head(served, "Transfer-Encoding: chunked") + rest)
            assert is_closed(connection)


def test_attack_slow_headers(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        answer = read(connection)
        assert (answer.status, answer.json["error"]) == (408, "headers_too_slow")
        assert is_closed(connection)


def test_attack_headers_byte_by_byte(served: Served) -> None:
    began = time.monotonic()
    with served.connect() as connection, suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(b"POST /mcp HTTP/1.1\r\nX-Slow: ")
        connection.settimeout(0.02)
        while time.monotonic() - began < 30:
            connection.sendall(b"a")
            try:
                if not connection.recv(1000):
                    break
            except TimeoutError:
                continue
    assert time.monotonic() - began < 20


def test_attack_slow_headers_after_an_answered_request(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(head(served, method="GET"))
        assert read(connection).status == 200
        connection.sendall(b"GET /mcp HTTP/1.1\r\n")
        assert read(connection).status == 408
        assert is_closed(connection)


def test_attack_connection_that_sends_nothing(served: Served) -> None:
    with served.connect() as connection:
        assert connection.recv(1000) == b""


def test_attack_endless_body_after_a_refusal(served: Served) -> None:
    """The body of a request that is refused for its host is dropped, but not for ever."""
    began = time.monotonic()
    with served.connect() as connection, suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert read(connection).status == 421
        while time.monotonic() - began < 30:
            connection.sendall(chunk(10))
    assert time.monotonic() - began < 20
