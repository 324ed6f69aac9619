"""Parses Alpaca's JSON: bars, pages of bars, and messages of a stream. Raises `MalformedMessage` for anything else."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from openbell.market.bars import MINUTE
from openbell.market.instruments import Instrument

Row = tuple[int, float, float, float, float, float]
"""The bar of one minute: its values in the order of `bars.COLUMNS`, the open time first."""


class MalformedMessage(Exception):
    """A response or message does not follow Alpaca's protocol; the text is the reason."""


@dataclass(slots=True)
class Page:
    """One page of the history: rows by instrument, the token of the next page, and the number of dropped rows by reason."""

    rows: dict[Instrument, list[Row]]
    token: str | None
    dropped: Counter[str] = field(default_factory=Counter)


def decode(body: bytes | str) -> Any:
    """Returns the parsed JSON. Raises `MalformedMessage`."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedMessage("not JSON") from None


def read_page(body: bytes, asked: Mapping[str, Instrument]) -> Page:
    """Returns the bars of the requested instruments. Drops bad rows; raises `MalformedMessage` for another shape."""
    answer = decode(body)
    if not isinstance(answer, dict) or "bars" not in answer:
        raise MalformedMessage("JSON without bars")
    bars, token = answer["bars"] or {}, answer.get("next_page_token") or None
    if not isinstance(bars, dict) or not isinstance(token, str | None):
        raise MalformedMessage("JSON of another shape")
    page = Page({}, token)
    for symbol, raws in bars.items():
        if not isinstance(raws, list | None):
            raise MalformedMessage("JSON of another shape")
        if instrument := asked.get(symbol):
            page.rows[instrument] = _rows(raws or [], page.dropped)
    return page


def _rows(raws: list[Any], dropped: Counter[str]) -> list[Row]:
    found = []
    for raw in raws:
        try:
            found.append(read_row(raw))
        except MalformedMessage as why:
            dropped[str(why)] += 1
    return found


def read_message(text: str | bytes) -> list[dict[str, Any]]:
    """Returns the items of one message of a stream. Raises `MalformedMessage`."""
    items = decode(text)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedMessage("JSON of another shape")
    return items


def read_row(raw: Any) -> Row:
    """Returns one bar. Raises `MalformedMessage` with the reason if its values are impossible."""
    if not isinstance(raw, dict):
        raise MalformedMessage("not an object")
    time = _time(raw.get("t"))
    open_, high, low, close, volume = map(_number, map(raw.get, "ohlcv"))
    if open_ <= 0 or low <= 0 or close <= 0:
        raise MalformedMessage("price not positive")
    if volume < 0:
        raise MalformedMessage("volume negative")
    if high < low:
        raise MalformedMessage("high below low")
    if not (low <= open_ <= high and low <= close <= high):
        raise MalformedMessage("open or close outside high and low")
    return time, open_, high, low, close, volume


def _number(value: Any) -> float:
    if type(value) is float:  # not isinstance, because a bool is an int
        number = value
    elif type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    else:
        raise MalformedMessage("a field is missing or not a number")
    if not math.isfinite(number):
        raise MalformedMessage("not finite")
    return number


def _time(value: Any) -> int:
    try:
        moment = datetime.fromisoformat(value)
        epoch = moment.timestamp() if moment.tzinfo else math.nan
    except (TypeError, ValueError, OverflowError):
        epoch = math.nan
    if math.isnan(epoch):
        raise MalformedMessage("no valid time")
    if epoch % MINUTE:
        raise MalformedMessage("time not on the minute")
    return int(epoch)
