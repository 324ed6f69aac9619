"""Names and limits of the gRPC backtester, for the service and its clients. This module imports nothing."""

from __future__ import annotations

SERVICE = "openbell.backtester.v1.Backtester"
MOST_BARS = 1_000_000
"""Of one series: almost two years of minutes."""
MOST_STRATEGIES = 10_000
"""Of a batch, and combinations of a walk-forward test."""
MOST_RUNS = 1_000_000
"""Windows times combinations of a walk-forward test."""
MOST_SPEC = 100_000
"""Characters of a spec."""
MOST_DRAWS = 1_000_000_000
"""Trades times simulations."""
MOST_MESSAGE = 128 * 1024 * 1024
"""Bytes of a request or a response."""
KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT = 30.0, 10.0
"""Seconds between pings of a connection, and after which one without an answer is closed."""
LEAST_KEEPALIVE = 1.0
"""Seconds between pings that the service accepts."""
