"""The registry of indicators: each module in `catalogue/` defines one as INDICATOR."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from openbell.indicators import catalogue
from openbell.indicators.spec import Indicator
from openbell.market.errors import InvalidParameter
from openbell.market.nearest import did_you_mean


@cache
def all_indicators() -> dict[str, Indicator]:
    """All indicators by name, sorted."""
    names = sorted(module.name for module in pkgutil.iter_modules(catalogue.__path__))
    found = [importlib.import_module(f"{catalogue.__name__}.{name}").INDICATOR for name in names]
    return {indicator.name: indicator for indicator in found}


@cache
def _by_any_name() -> dict[str, Indicator]:
    table = dict(all_indicators())
    for indicator in all_indicators().values():
        for alias in indicator.aliases:
            if table.setdefault(alias, indicator) is not indicator:
                raise ValueError(f"{alias} names both {table[alias].name} and {indicator.name}")
    return table


def get(name: str) -> Indicator:
    """The indicator with a name or alias. Raises `InvalidParameter` with the closest existing name."""
    table = _by_any_name()
    if name in table:
        return table[name]
    raise InvalidParameter(f"no indicator {name[:80]!r}{did_you_mean(name, table) or '; list_indicators has them all'}")
