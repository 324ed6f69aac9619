"""Errors of the backtester."""

from __future__ import annotations

from openbell.market.errors import CallTimeout, OpenbellError


class BacktesterUnavailable(OpenbellError):
    """The backtester cannot be reached, is busy, or ended in the middle of a run."""


class BacktestTimeout(CallTimeout):
    """A backtest took longer than its time limit."""
