"""Strategies, backtests and sweeps, and the processes that compute them."""
