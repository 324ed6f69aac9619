"""The simulator: a market that any process computes alike from seed, symbol and time, without an account or a network.

From the inside out: `noise` (hashed numbers), `days` (when a class trades and how busy each minute is), `walks` (one
random walk over days), `universe` (one row per symbol), `paths` (prices at minute boundaries), `minutes` (bars), `extras`
(funding, open interest and the like), `feed`.
"""

from openbell.feeds.sim.feed import SimFeed

__all__ = ["SimFeed"]
