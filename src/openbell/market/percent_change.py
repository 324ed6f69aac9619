"""The change from one price to another."""

from __future__ import annotations

from math import isfinite


def percent_change(before: float, now: float) -> float | None:
    """Returns the change in per cent; None if the earlier price is not positive, or the change too large for a number."""
    if not before > 0.0:
        return None
    change = (now - before) / before * 100
    return change if isfinite(change) else None
