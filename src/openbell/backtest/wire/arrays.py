"""Arrays, bars and numbers as fields of messages."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.backtest.wire import backtester_pb2 as pb
from openbell.backtest.wire.limits import MOST_BARS
from openbell.market.bars import COLUMNS, Bars, Values, faults
from openbell.market.errors import InvalidParameter
from openbell.market.instruments import parse
from openbell.market.session_table import Times
from openbell.market.timeframes import SHORT, name_of
from openbell.strategies.spec import Number

_SIZE = 8


def pack(values: npt.NDArray[Any]) -> bytes:
    """Returns floats or whole numbers as bytes, little-endian, 8 bytes each."""
    return values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()


def floats(packed: bytes, name: str) -> Values:
    """Returns packed floats. Raises `InvalidParameter`."""
    return _unpacked(packed, "<f8", name).astype(np.float64, copy=False)


def wholes(packed: bytes, name: str) -> Times:
    """Returns packed whole numbers. Raises `InvalidParameter`."""
    return _unpacked(packed, "<i8", name).astype(np.int64, copy=False)


def _unpacked(packed: bytes, kind: str, name: str) -> npt.NDArray[Any]:
    if len(packed) % _SIZE:
        raise InvalidParameter(f"{name} must have {_SIZE} bytes per value, not {len(packed)} bytes")
    return np.frombuffer(packed, dtype=kind)


def bars_message(bars: Bars) -> Any:
    """Returns the message of bars."""
    columns = {name: pack(column) for name, column in zip(COLUMNS, bars.columns(), strict=True)}
    return pb.Bars(symbol=bars.instrument.symbol, timeframe=name_of(bars.timeframe, SHORT), **columns)


def bars_of(message: Any) -> Bars:
    """Returns the bars of a message. Raises `InvalidParameter` if they cannot be bars of a market."""
    bars = _columns(message, "bars")
    if (np.diff(bars.time) <= 0).any():
        raise InvalidParameter("bars must be sorted by time, each time once")
    # No clock: a time in the future is no fault of a calculation.
    for reason, mask in faults(bars, inf):
        raise InvalidParameter(f"bar {int(mask.argmax())}: {reason}")
    return bars


def regular_of(request: Any, bars: Bars) -> Bars | None:
    """Returns the regular-hours part of bars, if a request has one; its prices may be missing."""
    if not request.HasField("regular"):
        return None
    regular = _columns(request.regular, "regular")
    if regular.series != bars.series or not np.array_equal(regular.time, bars.time):
        raise InvalidParameter("regular must have the symbol, the timeframe and the times of bars")
    if any(np.isinf(column).any() for column in regular.columns()):
        raise InvalidParameter("a value of regular is infinite")
    return regular


def _columns(message: Any, name: str) -> Bars:
    if message.timeframe not in SHORT:
        raise InvalidParameter(f"{name}: the timeframe must be one of {', '.join(SHORT)}")
    time = wholes(message.time, f"{name}.time")
    values = [floats(getattr(message, each), f"{name}.{each}") for each in COLUMNS[1:]]
    if len(time) > MOST_BARS:
        raise InvalidParameter(f"{name}: at most {MOST_BARS:,} bars, not {len(time):,}")
    if any(len(each) != len(time) for each in values):
        raise InvalidParameter(f"{name}: all columns must have {len(time)} values, as many as there are times")
    return Bars(parse(message.symbol), SHORT[message.timeframe], time, *values)


def number_messages(numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Returns the messages of parameters."""
    return {
        name: pb.Number(whole=value) if isinstance(value, int) else pb.Number(real=value)
        for name, value in numbers.items()
    }


def numbers_of(messages: Mapping[str, Any]) -> dict[str, Number]:
    """Returns the parameters of messages; one without a number is 0."""
    return {name: each.real if each.HasField("real") else each.whole for name, each in messages.items()}
