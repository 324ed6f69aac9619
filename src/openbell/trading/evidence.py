"""What a fill or an alert rests on: a bar, named by its hash, so that the ledger can be compared with the bars later."""

from __future__ import annotations

from hashlib import sha256

from openbell.market.bars import Bars
from openbell.trading.ledger import canonical


def bar_hash(bars: Bars, index: int) -> str:
    """The hash of one bar: symbol, timeframe, open time and its five numbers."""
    row = [column[index].item() for column in bars.columns()]
    return sha256(canonical([bars.instrument.symbol, bars.timeframe.seconds, *row]).encode()).hexdigest()
