"""The version of the token store is read once for all requests of one pass of the event loop."""

from __future__ import annotations

import asyncio
from itertools import count

from openbell.gateway.oauth.credentials import _Version


def test_requests_of_one_pass_share_a_version_and_later_ones_do_not() -> None:
    async def main() -> list[object]:
        version = _Version(count(1).__next__)

        async def request() -> object:
            return version()

        first = [asyncio.create_task(request()) for _ in range(3)]
        found = list(await asyncio.gather(*first))
        return [*found, await asyncio.create_task(request())]

    assert asyncio.run(main()) == [1, 1, 1, 2]
