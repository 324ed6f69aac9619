"""Parses the JSON of Yahoo's charts. Raises `MalformedChart` for other JSON and `YahooRefusal` for Yahoo's own errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
_PRICES = ("open", "high", "low", "close")


class MalformedChart(Exception):
    """A response does not follow Yahoo's protocol; the text is the reason."""


class YahooRefusal(Exception):
    """Yahoo returns an error instead of a chart; the text is its description."""


@dataclass(frozen=True, slots=True)
class Chart:
    """The rows of a chart, sorted by time, and what Yahoo states about the instrument."""

    meta: Mapping[str, Any]
    time: npt.NDArray[np.int64]
    """Epoch seconds at which the rows begin; of the last row, which may be the latest trade, any second."""
    prices: Values
    """Open, high, low and close, one column each; NaN where Yahoo has no value."""
    volume: Values


def read_chart(body: bytes, interval: str) -> Chart:
    """Returns the chart of a response. Raises `MalformedChart` and `YahooRefusal`."""
    try:
        chart = json.loads(body)["chart"]
    except (ValueError, RecursionError):
        raise MalformedChart("not JSON") from None
    except (KeyError, TypeError):
        raise MalformedChart("JSON without a chart") from None
    try:
        if error := chart["error"]:
            raise YahooRefusal(str(error["description"])[:200])
        found = chart["result"][0]
        meta = found["meta"]
        if (bars := meta["dataGranularity"]) != interval:
            raise MalformedChart(f"bars of {str(bars)[:20]} instead of {interval}")
        return _sorted(meta, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise MalformedChart("JSON of another shape") from None


def _sorted(meta: Mapping[str, Any], found: Mapping[str, Any]) -> Chart:
    """Returns the rows by time; of rows with the same time, Yahoo's order is kept."""
    times = np.array(found.get("timestamp") or [], dtype=np.int64)
    quote = found["indicators"]["quote"][0]
    columns = [np.array(quote[name] if len(times) else [], dtype=np.float64) for name in (*_PRICES, "volume")]
    if any(column.shape != times.shape for column in columns):
        raise ValueError("columns of different lengths")
    order = np.argsort(times, kind="stable")
    return Chart(
        meta,
        times[order],
        np.stack(columns[:-1], axis=1)[order],
        np.nan_to_num(columns[-1][order], nan=0.0),
    )


def shortest(prices: Values) -> Values:
    """Returns prices without the noise of 32-bit numbers: 237.42 for Yahoo's 237.4199981689453.

    Yahoo stores prices as 32-bit numbers and prints them with the digits of 64-bit numbers. The result is the shortest
    number with the same 32 bits. It keeps the order of prices. Prices that are no 32-bit numbers are not changed.
    """
    with np.errstate(over="ignore"):
        narrow = prices.astype(np.float32)
    short = narrow.astype("U32").astype(np.float64)
    return np.where(narrow.astype(np.float64) == prices, short, prices)
