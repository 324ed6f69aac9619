"""Expected trading hours: regular hours from exchange_calendars, extended hours from the design's table."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import exchange_calendars
import numpy as np
import numpy.typing as npt
import pandas as pd

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Oracle:
    """Expected trading hours, one row per session, times in epoch seconds."""

    dates: list[str]
    premarket: Times
    open: Times
    close: Times
    end: Times

    def regular_minutes(self) -> Times:
        """Returns all minutes of regular hours."""
        return np.concatenate([np.arange(a, b, 60) for a, b in zip(self.open, self.close, strict=True)])


@cache
def oracle(start: str = "2015-01-01", end: str = "2027-12-31") -> Oracle:
    """Returns the sessions of NYSE from `start` to `end`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # exchange_calendars calls functions that this pandas deprecates
        calendar = exchange_calendars.get_calendar("XNYS", start=start, end=end)
    dates = pd.DatetimeIndex(calendar.sessions)
    half = calendar.closes.dt.tz_convert("America/New_York").dt.hour.to_numpy() < 16

    def wall(hours: npt.NDArray[np.int64]) -> Times:
        return _seconds((dates + pd.to_timedelta(hours, unit="h")).tz_localize("America/New_York"))

    count = len(dates)
    return Oracle(
        [str(date.date()) for date in dates],
        wall(np.full(count, 4)),
        _seconds(pd.DatetimeIndex(calendar.opens)),
        _seconds(pd.DatetimeIndex(calendar.closes)),
        wall(np.where(half, 17, 20)),
    )


def _seconds(index: pd.DatetimeIndex) -> Times:
    return np.asarray(index.tz_convert("UTC").tz_localize(None).to_numpy().astype("datetime64[s]").astype(np.int64))
