"""A vendor for commands that run as processes of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openbell.market.clock import SystemClock
from tests.feeds.alpaca_server import KEY, SECRET, AlpacaServer


@pytest.fixture
def alpaca(monkeypatch: pytest.MonkeyPatch) -> Iterator[AlpacaServer]:
    """A local Alpaca at the machine's time, which the commands of this test use."""
    with AlpacaServer(SystemClock()) as server:
        for name, url in server.urls.items():
            monkeypatch.setenv(f"ALPACA_{name.upper()}", url)
        monkeypatch.setenv("ALPACA_API_KEY", KEY)
        monkeypatch.setenv("ALPACA_SECRET_KEY", SECRET)
        yield server
