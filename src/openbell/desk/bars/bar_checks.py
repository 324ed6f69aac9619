"""Screening: removes invalid bars and counts them by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from openbell.market import bars as barlib
from openbell.market.bars import Bars
from openbell.market.instruments import Instrument

LEEWAY = 5.0
"""Seconds by which a vendor's clock may be ahead of this machine's."""


def screen(parts: Sequence[Bars], now: float) -> tuple[list[Bars], Counter[str], set[Instrument]]:
    """Returns the valid bars of each part, sorted and without duplicates.

    Also returns the number of invalid bars by reason, and the instruments that have one.
    """
    refused: Counter[str] = Counter()
    faulty: set[Instrument] = set()
    filled = [part for part in parts if len(part)]
    if not filled:
        return [], refused, faulty
    # All parts at once: a minute of 500 symbols is 500 parts of one row.
    columns = [np.concatenate(group) for group in zip(*(part.columns() for part in filled), strict=True)]
    joined = Bars(filled[0].instrument, filled[0].timeframe, *columns)
    good = np.ones(len(joined), dtype=bool)
    for reason, mask in barlib.faults(joined, now, LEEWAY):
        refused[reason] += int(mask.sum())
        good &= ~mask
    kept: list[Bars] = []
    at = 0
    for part in filled:
        mask = good[at : at + len(part)]
        at += len(part)
        chosen = part
        if not mask.all():
            faulty.add(part.instrument)
            chosen = part.take(mask)
        if len(chosen):
            kept.append(chosen if len(chosen) == 1 else barlib.sort(chosen))
    return kept, refused, faulty
