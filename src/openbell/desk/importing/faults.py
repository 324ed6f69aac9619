"""What is wrong with the rows of a file, and whether anything is."""

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
    """What is wrong with the rows of a file; remembers the first few and counts the rest."""

    place: str
    counts: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, kind: str, places: Sequence[int] | Times, texts: Sequence[str] = ()) -> None:
        """Count faults of one kind at some rows."""
        self.counts[kind] += len(places)
        said = zip((int(place) for place in places[:SHOWN]), texts or [kind] * SHOWN, strict=False)
        self.first = sorted([*self.first, *said])[:SHOWN]

    def refuse(self) -> None:
        """Raise `BadBars` if there is anything to refuse."""
        total = self.counts.total()
        if not total:
            return
        lines = [f"{total:,} bad row{'s' if total > 1 else ''}, so none was taken"]
        lines += [f"  {self.place} {place}: {reason}" for place, reason in self.first]
        lines += [f"  and {total - len(self.first):,} more"] if total > len(self.first) else []
        raise BadBars("\n".join(lines), total=total, reasons=dict(self.counts), first=self.first)


def judged(rows: Bars, places: Times, faults: Faults, now: float) -> Bars:
    """The rows as sorted bars. Raises `BadBars` if there are faults, now or from reading them."""
    if not len(rows) and not faults.counts:
        raise InvalidParameter("the file names its columns but holds no bars")
    true = np.ones(len(rows), dtype=bool)
    for reason, mask in barlib.faults(rows, now):
        faults.add(reason, places[mask])
        true &= ~mask
    ordered = bool((rows.time[1:] > rows.time[:-1]).all())
    if not ordered:
        _compare_doubles(rows.take(true), places[true], faults)
    faults.refuse()
    return rows if ordered else barlib.sort(rows)


def _compare_doubles(rows: Bars, places: Times, faults: Faults) -> None:
    """The same row twice is no harm; two different bars of one minute are."""
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
