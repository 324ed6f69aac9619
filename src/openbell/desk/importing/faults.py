"""Collects the faults of a file's rows, and refuses the file if there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat

from openbell.desk.importing.layout import SHOWN
from openbell.market.errors import BadBars
from openbell.market.session_table import Times


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

    def refuse(self) -> None:
        """Raise `BadBars` if there are faults."""
        total = self.counts.total()
        if not total:
            return
        lines = [f"{total:,} bad row{'s' if total > 1 else ''}, so none was taken"]
        lines += [f"  {self.place} {place}: {reason}" for place, reason in self.first]
        lines += [f"  and {total - len(self.first):,} more"] if total > len(self.first) else []
        raise BadBars("\n".join(lines), total=total, reasons=dict(self.counts), first=self.first)
