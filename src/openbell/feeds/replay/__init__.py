"""Delivers stored bars as if they were live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.registry import FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.replay.feed import ReplayFeed

    return ReplayFeed(parts.store(), parts.clock, parts.threads)


FEED = FeedKind("replay", Origin.REPLAY, "stored bars as if they were live", "Replay of stored bars", _make)
