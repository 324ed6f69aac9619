"""Collects the faults of a file's rows, and refuses the file if there are any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

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
    counts: Counter[str] = field(default_factory=Counter)
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, kind: str, places: Sequence[int] | Times, texts: Sequence[str] = ()) -> None:
        """Add faults of one kind at some rows."""
        if not len(places):
            return
        self.counts[kind] += len(places)
        reasons = (self.subject + text for text in (texts or [kind] * len(places)))
        found = list(zip((int(place) for place in places), reasons, strict=False))
        self.first = sorted([*self.first, *sorted(found)[:SHOWN]])[:SHOWN]

    def refuse(self) -> None:
        """Raise `BadBars` if there are faults."""
        total = self.counts.total()
        if not total:
            return
        lines = [f"{total:,} bad row{'s' if total > 1 else ''}, so none was taken"]
        lines += [f"  {self.place} {place}: {reason}" for place, reason in self.first]
        lines += [f"  and {total - len(self.first):,} more"] if total > len(self.first) else []
        raise BadBars("\n".join(lines), total=total, reasons=dict(self.counts), first=self.first)
