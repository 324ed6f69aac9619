"""The moment that the change of a day is measured from."""

from __future__ import annotations

from datetime import timedelta

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import Session, eastern, session_on

_DAY = 86400
_LONGEST_BREAK = 10
"""Days; the longest that stocks have not traded since 1933 was a week."""


def compared_from(instrument: Instrument, end: float, now: float) -> float:
    """Returns the moment whose price the newest one, of a bar that ended at `end`, is compared with: 24 hours before `now`.

    The newest price of a stock is compared with the close of the session before its own on a New York date without a
    session (a weekend, a holiday), and whenever the 24 hours hold no trade: the price of 24 hours ago would be the same one.
    """
    if instrument.asset_class is not AssetClass.STOCK:
        return now - _DAY
    if session_on(eastern(now).date()) and end > now - _DAY:
        return now - _DAY
    before = _session_before(end)
    return before.close if before else now - _DAY


def _session_before(end: float) -> Session | None:
    """Returns the session before the one of a bar that ended at `end`; None if that was in no session."""
    day = eastern(end - 1).date()
    if session_on(day) is None:
        return None
    earlier = (session_on(day - timedelta(days)) for days in range(1, _LONGEST_BREAK))
    return next(filter(None, earlier), None)
