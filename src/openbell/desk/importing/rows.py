"""The rows of a file as columns: times and prices, still without a timeframe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.desk.importing.faults import Faults
from openbell.desk.importing.stamps import Stamps
from openbell.market.bars import Values
from openbell.market.session_table import Times

Mask = npt.NDArray[np.bool_]
OFF_MINUTE = "time not on the minute"
NO_VALUE = ("", "null", "nan", "NaN", "NA", "N/A")
"""Texts that stand for a missing number."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file. A row has prices for each block of the layout."""

    places: Times
    """The numbers of the lines or rows in the file."""
    stamps: Stamps
    values: list[tuple[Values, ...]]
    """For each block its columns in the order of `Block.columns`; NaN where the file has no number."""
    symbols: Any = None
    """The symbol of each row, an Arrow array of texts; None if the rows do not name it."""
    periods: Any = None
    """The timeframe of each row, likewise."""

    def take(self, index: Any) -> Rows:
        """Returns some of the rows, by a mask or by their numbers."""
        times = self.stamps.times
        some = replace(
            times,
            written=times.written[index],
            offset=times.offset[index],
            readable=times.readable[index],
            whole=times.whole[index],
        )
        texts = (None if each is None else each.take(_numbers(index)) for each in (self.symbols, self.periods))
        values = [tuple(column[index] for column in columns) for columns in self.values]
        return Rows(self.places[index], replace(self.stamps, times=some), values, *texts)


def _numbers(index: Any) -> Any:
    return np.flatnonzero(index) if index.dtype == np.bool_ else index


Reader = Callable[[Faults], Rows]
"""Reads a file, and adds its unreadable rows to the faults."""
