"""Backtests: the trades of a strategy over bars, its equity, and figures that describe both. Pure."""
