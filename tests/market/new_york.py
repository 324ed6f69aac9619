"""The oracle of trading hours: exchange_calendars for regular ones, the design's table for extended ones."""

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
    """One row per session; times are epoch seconds."""

    dates: list[str]
    premarket: Times
    open: Times
    close: Times
    end: Times

    def regular_minutes(self) -> Times:
        """Every minute of regular hours."""
        return np.concatenate([np.arange(a, b, 60) for a, b in zip(self.open, self.close, strict=True)])


@cache
def oracle(start: str = "2015-01-01", end: str = "2027-12-31") -> Oracle:
    """What NYSE did and will do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # exchange_calendars uses what this pandas deprecates
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
