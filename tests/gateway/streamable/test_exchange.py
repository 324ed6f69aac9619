"""A response to a client that reads slowly: its headers come first, whatever else wants to be sent meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from openbell.gateway.streamable import exchange as module
from openbell.gateway.streamable.exchange import HttpExchange
from tests.servers.desks import awaited
from tests.waiting import until


@pytest.mark.parametrize("is_stopped", [False, True])
@awaited
async def test_no_body_is_sent_before_its_headers_to_a_client_that_reads_slowly(
    is_stopped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keep-alive comments begin, and wait for the client, when the result is ready and stops them."""
    monkeypatch.setattr(module, "PING_SECONDS", 0.0)
    sent: list[str] = []
    waiting, reads = 0, asyncio.Event()

    async def send(part: MutableMapping[str, Any]) -> None:
        nonlocal waiting
        waiting += 1
        await reads.wait()  # as uvicorn does while the client's buffer is full
        is_start = part["type"] == "http.response.start"
        sent.append("start" if is_start else "body" if part.get("more_body") else "last body")

    made = HttpExchange(send, 1, None, None, version="2025-11-25", modern=False, streams=True)  # type: ignore[arg-type]
    keeping = asyncio.create_task(made.keep_alive())
    await until(lambda: waiting == 1, "the first comment")
    if is_stopped:
        keeping.cancel()
    finishing = asyncio.create_task(made.finish(b"{}"))
    await asyncio.sleep(0)
    reads.set()
    await finishing
    keeping.cancel()
    assert sent[0] == "start"
    assert sent.count("start") == 1
    assert "last body" in sent
