"""The simulator: a market that any process computes alike from seed, symbol and time, without an account or a network.

From the inside out: `noise` (hashed numbers), `days` (when a class trades and how busy each minute is), `walks` (one
random walk over days), `universe` (one row per symbol), `paths` (prices at minute boundaries), `minutes` (bars), `extras`
(funding, open interest and the like), `feed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.declaration import FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.sim.feed import SimFeed

    return SimFeed(parts.clock, parts.settings["sim_seed"])


FEED = FeedKind("sim", Origin.SIMULATED, "simulated", "Openbell simulator (simulated data)", _make)
