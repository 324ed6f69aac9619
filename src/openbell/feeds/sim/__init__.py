"""The simulator: a market that every process computes identically from seed, symbol and time, without account or network.

Each module uses the ones before it: `noise` (hashed random numbers), `days` (trading hours and the activity of each minute),
`universe` (the symbols), `paths` (random walks over days, and prices at the ends of minutes), `bars`, `feed` (also funding,
open interest, …).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openbell.feeds.registry import STOCKS_AND_CRYPTO, FeedKind, FeedParts
from openbell.market.provenance import Origin

if TYPE_CHECKING:
    from openbell.feeds.port import Feed


def _make(parts: FeedParts) -> Feed:
    from openbell.feeds.sim.feed import SimFeed

    return SimFeed(parts.clock, seed=parts.settings["sim_seed"])


FEED = FeedKind(
    "sim",
    Origin.SIMULATED,
    "simulated",
    "Openbell simulator (simulated data)",
    _make,
    watchlist=lambda _argument: STOCKS_AND_CRYPTO,
)
