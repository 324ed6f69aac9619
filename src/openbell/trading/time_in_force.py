"""When day orders expire: at the end of the instrument's trading day."""

from __future__ import annotations

from openbell.market.instruments import AssetClass, Instrument
from openbell.market.sessions import eastern, next_open, session_on
from openbell.market.trading_days import currency_days_between

_DAY = 86400


def day_end(instrument: Instrument, at: float) -> float:
    """Returns when a day order expires: at the close of the session for stocks, at 17:00 New York for forex, else at the
    end of the UTC day. While the market is closed, the next day counts.
    """
    if instrument.asset_class is AssetClass.FOREX:
        closes = currency_days_between(at, at).close
        row = int(closes.searchsorted(at, side="right"))
        if row < len(closes):
            return float(closes[row])
    if instrument.asset_class is not AssetClass.STOCK:
        return float((at // _DAY + 1) * _DAY)
    session = session_on(eastern(at).date())
    if session is None or at >= session.close:
        session = next_open(at)
    return float(session.close) if session else float((at // _DAY + 1) * _DAY)
