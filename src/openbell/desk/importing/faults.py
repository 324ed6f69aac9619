"""Collects the faults of a file's rows, and refuses the file if there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from openbell.desk.importing.columns import SHOWN
from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.clock import iso
from openbell.market.errors import BadBars, InvalidParameter
from openbell.market.session_table import Times


@dataclass(slots=True)
class Faults:
    """The faults of a file's rows: the first few in full, and a count of each kind."""

    place: str
    """What the numbers of rows count: `line` or `row`."""
    counts: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, kind: str, places: Sequence[int] | Times, texts: Sequence[str] = ()) -> None:
        """Add faults of one kind at some rows."""
        self.counts[kind] += len(places)
        first = zip((int(place) for place in places[:SHOWN]), texts or [kind] * SHOWN, strict=False)
        self.first = sorted([*self.first, *first])[:SHOWN]

    def refuse(self) -> None:
        """Raise `BadBars` if there are faults."""
        total = self.counts.total()
        if not total:
            return
        lines = [f"{total:,} bad row{'s' if total > 1 else ''}, so none was taken"]
        lines += [f"  {self.place} {place}: {reason}" for place, reason in self.first]
        lines += [f"  and {total - len(self.first):,} more"] if total > len(self.first) else []
        raise BadBars("\n".join(lines), total=total, reasons=dict(self.counts), first=self.first)


def checked(rows: Bars, places: Times, faults: Faults, now: float) -> Bars:
    """The rows as sorted bars. Raises `BadBars` if reading them or checking them has found faults."""
    if not len(rows) and not faults.counts:
        raise InvalidParameter("the file names its columns but holds no bars")
    good = np.ones(len(rows), dtype=bool)
    for reason, mask in barlib.faults(rows, now):
        faults.add(reason, places[mask])
        good &= ~mask
    ordered = bool((rows.time[1:] > rows.time[:-1]).all())
    if not ordered:
        _compare_doubles(rows.take(good), places[good], faults)
    faults.refuse()
    return rows if ordered else barlib.sort(rows)


def _compare_doubles(rows: Bars, places: Times, faults: Faults) -> None:
    """Add a fault for each bar that differs from an earlier one of the same minute. Equal rows are allowed."""
    order = np.argsort(rows.time, kind="stable")
    times = rows.time[order]
    again = np.append(False, times[1:] == times[:-1])[: len(times)]
    if not again.any():
        return
    original = np.maximum.accumulate(np.where(again, 0, np.arange(len(times))))
    differs = np.zeros(len(times), dtype=bool)
    for column in rows.columns()[1:]:
        values = column[order]
        differs |= values != values[original]
    found = np.flatnonzero(differs)
    found = found[np.argsort(places[order][found])]
    texts = [
        f"another bar of {iso(int(times[at]))} than {faults.place} {places[order[original[at]]]}"
        for at in found[:SHOWN].tolist()
    ]
    faults.add("two bars of one minute", places[order][found], texts)
