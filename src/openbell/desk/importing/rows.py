"""The rows of a file as columns: times and prices, still without a timeframe; and the faults of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from openbell.desk.importing.layout import SHOWN
from openbell.desk.importing.stamps import Stamps
from openbell.market.bars import Values
from openbell.market.errors import BadBars
from openbell.market.session_table import Times

Mask = npt.NDArray[np.bool_]
OFF_MINUTE = "time not on the minute"
NO_VALUE = ("", "null", "nan", "NaN", "NA", "N/A")
"""Texts that stand for a missing number."""


@dataclass(slots=True)
class Faults:
    """The faults of a file's rows: the first few in full, and a count of each kind."""

    place: str
    """What the numbers of rows count: `line` or `row`."""
    subject: str = ""
    """Comes before the reasons: the symbol, if a row has bars of several."""
    most: int = SHOWN
    """How many faults are kept in full."""
    counts: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, str]] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    """The numbers of all rows that have a fault."""

    def add(self, kind: str, places: Sequence[int] | Times, texts: Sequence[str] = ()) -> None:
        """Add faults of one kind at some rows."""
        if not len(places):
            return
        self.counts[kind] += len(places)
        self.rows.update(int(place) for place in places)
        # A kind with few texts has those of its first rows.
        reasons = (self.subject + text for text in chain(texts, repeat(kind)))
        found = list(zip((int(place) for place in places), reasons, strict=False))
        self.first = sorted([*self.first, *sorted(found)[: self.most]])[: self.most]

    def join(self, others: Faults) -> None:
        """Add the faults that were found once the rows of these were left out."""
        self.counts += others.counts
        self.first = sorted([*self.first, *others.first])[: self.most]
        self.rows |= others.rows

    def listing(self) -> list[str]:
        """Returns a line for each of the first faults, and how many more there are."""
        lines = [f"  {self.place} {place}: {reason}" for place, reason in self.first]
        rest = self.counts.total() - len(self.first)
        kinds = ", ".join(f"{count:,} × {kind}" for kind, count in self.counts.items())
        return [*lines, f"  and {rest:,} more; in all {kinds}"] if rest else lines

    def refuse(self, why: str = "") -> None:
        """Raise `BadBars` if there are faults. `why` is added to the first line."""
        total = self.counts.total()
        if not total:
            return
        lines = [f"{total:,} bad row{'s' if total > 1 else ''}, so none was taken{why}", *self.listing()]
        raise BadBars("\n".join(lines), total=total, reasons=dict(self.counts), first=self.first)


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
