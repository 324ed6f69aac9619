"""A client that repeats requests over many connections until it is killed: `python -m tests.gateway.guard.attacker`.

Standard input has a line of JSON: the port, for each attack its connections and its requests, how many idle connections are
held beside them, and the address of a backtester that gets large messages. It prints a line when each attack was answered
once, or its connection closed if its request is not complete, and then the answers so far, by attack, each second.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from base64 import b64decode
from collections import Counter
from contextlib import suppress
from itertools import cycle
from typing import Any

import grpc

from openbell.backtest.wire.limits import MEGABYTE, SERVICE, USUAL_MESSAGE_MB

UNFINISHED = frozenset(("unfinished bodies", "stopped forms"))
"""Attacks whose connections may be closed instead of answered."""
IDLE, LARGE = "idle connections", "large messages"
_LONGEST = 60.0
"""Seconds until each attack must have been answered."""
_BREATH = 1.0
"""Seconds between large messages: without them, the backtester would leave little of the processors to this process."""
_PAUSE = 5.0
"""Seconds until an idle connection that was closed is opened again: sooner, this process would do little else."""


async def _repeat(port: int, requests: list[bytes], answered: Counter[str], name: str) -> None:
    for request in cycle(requests):
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            begun = False
            try:
                begun = bool(await reader.read(20))
                while await reader.read(65536):
                    pass
            finally:
                answered[name] += begun or name in UNFINISHED
                writer.close()
        await asyncio.sleep(0.01)


async def _idle(port: int, answered: Counter[str]) -> None:
    """Hold a connection on which nothing is sent, and open another one when it is closed."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            answered[IDLE] += 1
            writer.close()
        await asyncio.sleep(_PAUSE)


async def _decode(address: str, answered: Counter[str]) -> None:
    """Send a message of empty parts, which takes thirty times its size while it is decoded."""
    request = b"\x0a\x00" * (USUAL_MESSAGE_MB * MEGABYTE // 2 - 1024)
    async with grpc.aio.insecure_channel(address, [("grpc.max_send_message_length", -1)]) as channel:
        while True:
            with suppress(grpc.RpcError):
                await channel.unary_unary(f"/{SERVICE}/RunPortfolio")(request)
            answered[LARGE] += 1
            await asyncio.sleep(_BREATH)


async def _attack(given: dict[str, Any]) -> None:
    port, attacks = given["port"], given["attacks"]
    answered: Counter[str] = Counter()
    tasks = [
        asyncio.create_task(_repeat(port, [b64decode(each) for each in requests], answered, name))
        for name, (connections, requests) in attacks.items()
        for _ in range(connections)
    ]
    tasks += [asyncio.create_task(_idle(port, answered)) for _ in range(given["idle"])]
    tasks.append(asyncio.create_task(_decode(given["backtester"], answered)))
    end = asyncio.get_running_loop().time() + _LONGEST
    while missing := [name for name in (*attacks, IDLE, LARGE) if not answered[name]]:
        assert asyncio.get_running_loop().time() < end, f"not answered: {missing}, of {answered}"
        await asyncio.wait(tasks, timeout=0.1)
    while True:
        print(json.dumps(answered), flush=True)
        await asyncio.wait(tasks, timeout=1)


if __name__ == "__main__":
    os.nice(19)  # it would run on another machine
    given = json.loads(sys.stdin.readline())
    asyncio.run(_attack(given))
