"""Names and limits of the gRPC backtester, for the service and its clients. This module imports nothing."""

from __future__ import annotations

SERVICE = "openbell.backtester.v1.Backtester"
MOST_BARS = 1_000_000
"""Of one series: almost two years of minutes."""
MOST_COMBINATIONS = 10_000
"""Of a walk-forward test."""
MOST_RUNS = 1_000_000
"""Windows times combinations of a walk-forward test."""
MOST_SPEC = 100_000
"""Characters of a spec."""
MOST_DRAWS = 1_000_000_000
"""Trades times simulations."""
MEGABYTE = 1024 * 1024
USUAL_MESSAGE_MB, MOST_MESSAGE_MB = 16, 128
"""Megabytes of a request or a response: by default, and the highest limit that can be set. A million bars and their
regular part are 96 MB; a request takes several times its size in memory while it is decoded."""
KEEPALIVE_INTERVAL, KEEPALIVE_TIMEOUT = 30.0, 10.0
"""Seconds between pings of a connection, and after which one without an answer is closed."""
LEAST_KEEPALIVE = 1.0
"""Seconds between pings that the service accepts."""
