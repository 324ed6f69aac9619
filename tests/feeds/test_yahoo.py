"""The Yahoo feed, tested with a local server that has the protocol of Yahoo's charts and injects faults."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from openbell.feeds.port import Feed
from openbell.feeds.yahoo import feed as feed_module
from openbell.feeds.yahoo.feed import YahooFeed
from openbell.market.clock import Clock, FixedClock
from tests.feeds.contract import NOW, FeedContract
from tests.feeds.yahoo_server import AAPL, BTC, EUR, YahooServer

pytestmark = pytest.mark.skipif(find_spec("yfinance") is None, reason="pip install 'openbell[yahoo]'")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[YahooServer]:
    with YahooServer(FixedClock(NOW + 30), latency=0.0) as running:
        running.rate = running.rate.__class__(1e9, 1, {})
        monkeypatch.setattr(feed_module, "MACHINE", FixedClock(NOW + 30))
        yield running


class TestYahoo(FeedContract):
    known = (AAPL, BTC, EUR)

    @pytest.fixture(autouse=True)
    def running(self, server: YahooServer) -> None:
        self.server = server

    def make(self, clock: Clock, folder: Path) -> Feed:
        self.server.clock = clock
        return YahooFeed(clock, proxy=self.server.proxy)
