"""The cut test: the conditions up to a bar must be the same, whether later bars are there or not."""

from __future__ import annotations

from openbell.market.bars import Bars
from openbell.strategies.compiled import Compiled
from openbell.strategies.evaluation import Conditions, evaluate


def looks_ahead(
    strategy: Compiled, bars: Bars, cut: int, regular: Bars | None = None, whole: Conditions | None = None
) -> bool:
    """Returns True if conditions before the bar `cut` differ from those that are computed without it and later ones."""
    found = evaluate(strategy, bars, regular) if whole is None else whole
    some = slice(0, cut)
    early = evaluate(strategy, bars.take(some), None if regular is None else regular.take(some))
    pairs = ((found.entry, early.entry), (found.exit, early.exit))
    return any(list(late[some]) != list(one) for late, one in pairs)
