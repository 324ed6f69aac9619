"""A page out of the bars of several series, oldest first; bars of the same time are in the order of their series.

Prices and volumes are decimal texts: the shortest that is the same float64, without an exponent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from openbell.market.bars import Bars
from openbell.market.digit_columns import volume_column
from openbell.market.timeframes import Timeframe


def items_of(parts: Sequence[Bars], skip: int, size: int, interval: str) -> tuple[list[dict[str, Any]], list[Bars]]:
    """Returns `size` bars of all parts after the first `skip`, as items, and the bars of each part among them."""
    if not parts:
        return [], []
    time, *values = (np.concatenate(group) for group in zip(*(part.columns() for part in parts), strict=True))
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    chosen = np.lexsort((owner, time))[skip : skip + size]
    owners = owner[chosen]
    times = np.datetime_as_string(time[chosen].astype("datetime64[s]")).tolist()
    *prices, volume = (column[chosen] for column in values)
    # All parts have the same timeframe: the volumes of minutes are the feed's own, others may be sums.
    volume = volume if parts[0].timeframe is Timeframe.M1 else volume_column(volume)
    texts = [decimal_texts(column.tolist()) for column in (*prices, volume)]
    tickers = [(part.instrument.symbol, part.instrument.has_volume) for part in parts]
    items = [
        {
            "ticker": tickers[index][0],
            "timestamp": f"{moment}+00:00",
            "open": o,
            "high": h,
            "low": low,
            "close": c,
            "volume": v if tickers[index][1] else None,
            "interval": interval,
        }
        for index, moment, o, h, low, c, v in zip(owners.tolist(), times, *texts, strict=True)
    ]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    used = [part.take(np.sort(chosen[owners == index]) - starts[index]) for index, part in enumerate(parts)]
    return items, [bars for bars in used if len(bars)]


def decimal_text(value: float) -> str:
    """Returns a finite number as a decimal text. Up to 15 digits it has exactly those that the feed sent."""
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text


def decimal_texts(values: Iterable[float]) -> list[str]:
    """Returns many numbers as decimal texts."""
    return [decimal_text(value) for value in values]
