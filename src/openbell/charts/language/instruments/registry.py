"""The registry of instruments: each module in `kinds/` defines its own as INSTRUMENTS."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell.charts.language.instruments import kinds
from openbell.charts.language.instruments.named import Named


@cache
def all_instruments() -> tuple[Named, ...]:
    """All instruments, sorted by symbol."""
    modules = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__))
    found = (each for name in modules for each in importlib.import_module(f"{kinds.__name__}.{name}").INSTRUMENTS)
    return tuple(sorted(found, key=lambda each: each.symbol))


@cache
def by_name() -> dict[str, Named]:
    """All instruments by each of their names, in lower case."""
    return _table("names")


@cache
def by_ticker() -> dict[str, Named]:
    """All instruments by each of their tickers, in lower case."""
    return _table("tickers")


def _table(field: str) -> dict[str, Named]:
    table: dict[str, Named] = {}
    for instrument in all_instruments():
        for word in getattr(instrument, field):
            if table.setdefault(word, instrument) is not instrument:
                raise ValueError(f"{word!r} names both {table[word].symbol} and {instrument.symbol}")
    return table
