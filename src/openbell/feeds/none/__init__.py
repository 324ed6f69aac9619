"""No feed: the desk uses stored bars only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.registry import FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(_parts: FeedParts) -> Feed:
    from openbell.feeds.none.feed import NoFeed

    return NoFeed()


FEED = FeedKind("none", Origin.IMPORTED, "stored bars only", "Imported bars", _make)
