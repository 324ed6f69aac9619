"""Requests end within their bounds whatever a server sends, from an event loop and from a thread."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from openbell.net import this_machine
from openbell.net.http import BlockingClient, HttpClient, HttpFailed, HttpFault, RequestBounds
from openbell.net.response import Response
from tests.gateway import receivers
from tests.gateway.receivers import Receiver, status
from tests.waiting import until

BOUNDS = RequestBounds(whole=5.0, largest=1_000)
Get = Callable[..., Response]


def from_a_loop(url: str, bounds: RequestBounds = BOUNDS) -> Response:
    async def run() -> Response:
        client = HttpClient(url, {"X-Key": "k"}, bounds)
        try:
            return await client.send("GET", "/")
        finally:
            await client.close()

    return asyncio.run(run())


def from_a_thread(url: str, bounds: RequestBounds = BOUNDS) -> Response:
    with closing(BlockingClient(url, {"X-Key": "k"}, bounds)) as client:
        return client.send("GET", "/")


@pytest.fixture(params=[from_a_loop, from_a_thread])
def get(request: pytest.FixtureRequest) -> Get:
    found: Get = request.param
    return found


@pytest.mark.parametrize(
    ("answer", "fault", "known"),
    [
        (receivers.endless_body(), HttpFault.LARGE_BODY, 200),
        (status(200, b"x" * 1_001), HttpFault.LARGE_BODY, 200),
        (status(201, x_long="y" * 40_000), HttpFault.LARGE_HEAD, 201),
        (receivers.endless_head(), HttpFault.CUT, None),
        (receivers.half_a_body(), HttpFault.CUT, 200),
        (receivers.hang_up(), HttpFault.CUT, None),
        (receivers.garbage(), HttpFault.CUT, None),
    ],
)
def test_a_response_beyond_the_bounds_or_incomplete_fails_with_its_reason(
    get: Get, answer: receivers.Answering, fault: HttpFault, known: int | None
) -> None:
    with Receiver() as receiver:
        receiver.plan.append(answer)
        with pytest.raises(HttpFailed) as caught:
            get(receiver.url)
        assert (caught.value.fault, caught.value.status, caught.value.sent) == (fault, known, True)
        assert len(receiver.seen) == 1


@pytest.mark.parametrize("answer", [receivers.silence(), receivers.dripping_body()])
def test_the_whole_exchange_is_bounded_in_time(get: Get, answer: receivers.Answering) -> None:
    with Receiver() as receiver:
        receiver.plan.append(answer)
        began = time.monotonic()
        with pytest.raises(HttpFailed) as caught:
            get(receiver.url, replace(BOUNDS, whole=0.3))
        assert caught.value.fault is HttpFault.LATE
        assert time.monotonic() - began < 5


def test_a_program_of_this_machine_cannot_hold_its_caller_either() -> None:
    with Receiver() as receiver:
        receiver.plan.append(receivers.dripping_body())
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            this_machine.get(f"{receiver.url}/", seconds=0.3)
        assert time.monotonic() - began < 5
        receiver.plan.append(status(503, b"body", X_Some="1"))
        assert this_machine.get(f"{receiver.url}/a", {"X-A": "1"}, seconds=5).headers["x-some"] == "1"
        assert (receiver.seen[1].path, receiver.seen[1].headers["x-a"]) == ("/a", "1")


def test_redirects_are_answers_and_headers_are_sent_once(get: Get) -> None:
    with Receiver() as other, Receiver() as receiver:
        receiver.plan.append(status(302, b"there", location=other.url, set_cookie="a=b"))
        response = get(receiver.url)
        assert (response.status, response.body, other.connections) == (302, b"there", 0)
        headers = receiver.seen[0].headers
        assert (headers["x-key"], headers["accept-encoding"], headers["user-agent"]) == ("k", "identity", "openbell")


def test_what_was_certainly_not_sent_is_known(get: Get) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(HttpFailed) as caught:
            get(f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert (caught.value.fault, caught.value.sent, str(caught.value)) == (HttpFault.UNREACHABLE, False, "ConnectError")


def test_a_header_that_cannot_be_sent_is_not_repeated() -> None:
    with Receiver() as receiver, closing(BlockingClient(receiver.url, {"X-Key": "hush\r\nX-More: 1"})) as client:
        with pytest.raises(HttpFailed) as caught:
            client.send("GET", "/")
        assert caught.value.fault is HttpFault.INVALID
        assert "hush" not in str(caught.value)
        assert receiver.seen == []


def test_decoded_bytes_count_if_compressed_responses_are_accepted() -> None:
    async def run(url: str) -> Response:
        client = HttpClient(url, None, BOUNDS, decode=True)
        try:
            return await client.send("GET", "/")
        finally:
            await client.close()

    with Receiver() as receiver:
        receiver.plan.append(status(200, gzip.compress(b"0" * 900), content_encoding="gzip"))
        assert asyncio.run(run(receiver.url)).body == b"0" * 900
        receiver.plan.append(status(200, gzip.compress(b"0" * 100_000), content_encoding="gzip"))
        with pytest.raises(HttpFailed) as caught:
            asyncio.run(run(receiver.url))
        assert caught.value.fault is HttpFault.LARGE_BODY


def test_a_client_is_closed_when_idle_and_serves_one_loop_after_another() -> None:
    with ExitStack() as stack:
        receiver = stack.enter_context(Receiver())
        client = HttpClient(receiver.url, None, replace(BOUNDS, idle=0.01))

        async def run() -> None:
            for _ in range(2):
                assert (await client.send("GET", "/")).status == 204
                await until(lambda: len(asyncio.all_tasks()) == 1, "the client to close")

        asyncio.run(run())
        asyncio.run(run())


def test_no_more_turns_at_once_than_connections() -> None:
    async def run() -> int:
        client = HttpClient("http://127.0.0.1:9", None, replace(BOUNDS, connections=2))
        running, most = 0, 0

        async def one() -> None:
            nonlocal running, most
            async with client.turn():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*(one() for _ in range(10)))
        await client.close()
        return most

    assert asyncio.run(run()) == 2
