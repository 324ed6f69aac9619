"""Errors of the backtester."""

from __future__ import annotations

from typing import Any

from openbell.market.errors import CallTimeout, OpenbellError


class BacktesterUnavailable(OpenbellError):
    """The backtester cannot be reached, is busy, or ended in the middle of a run."""


class BacktestTimeout(CallTimeout):
    """A backtest took longer than its time limit."""


def too_long(timeout: float, **details: Any) -> BacktestTimeout:
    """Returns the error of a job that took longer than its limit."""
    return BacktestTimeout(
        f"the backtest took longer than {timeout:g} s (OPENBELL_BACKTEST_TIMEOUT): use fewer bars or a longer limit",
        timeout_s=timeout,
        **details,
    )
