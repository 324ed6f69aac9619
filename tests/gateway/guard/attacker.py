"""A client that repeats requests over many connections until it is killed: `python -m tests.gateway.guard.attacker`.

Standard input has a line of JSON: the port, and for each attack its connections and its request. It prints a line when each
attack was answered once, and then the answers so far, by attack, each second.
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

_LONGEST = 60.0
"""Seconds until each attack must have been answered."""


async def _repeat(port: int, requests: list[bytes], answered: Counter[str], name: str) -> None:
    for request in cycle(requests):
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            if await reader.read(20):
                answered[name] += 1
            while await reader.read(65536):
                pass
            writer.close()
        await asyncio.sleep(0.01)


async def _attack(port: int, attacks: dict[str, Any]) -> None:
    answered: Counter[str] = Counter()
    tasks = [
        asyncio.create_task(_repeat(port, [b64decode(each) for each in requests], answered, name))
        for name, (connections, requests) in attacks.items()
        for _ in range(connections)
    ]
    async with asyncio.timeout(_LONGEST):
        while not all(answered[name] for name in attacks):
            await asyncio.wait(tasks, timeout=0.1)
    while True:
        print(json.dumps(answered), flush=True)
        await asyncio.wait(tasks, timeout=1)


if __name__ == "__main__":
    os.nice(19)  # it would run on another machine
    given = json.loads(sys.stdin.readline())
    asyncio.run(_attack(given["port"], given["attacks"]))
