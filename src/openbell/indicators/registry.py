"""The registry of indicators: each module in `catalogue/` defines one as INDICATOR."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

from openbell.indicators import catalogue
from openbell.indicators.spec import Indicator, plain, suggestion
from openbell.market.errors import InvalidParameter

_NUMBERED = re.compile(r"([A-Za-z][A-Za-z _-]*?)[ _(-]*([0-9]{1,5})\)?")
"""A name and a number: ema50, EMA(50), ema_50."""
MAX_INDICATORS = 24
"""The most indicators of one request."""


@cache
def all_indicators() -> dict[str, Indicator]:
    """All indicators by name, sorted."""
    names = sorted(module.name for module in pkgutil.iter_modules(catalogue.__path__))
    found = [importlib.import_module(f"{catalogue.__name__}.{name}").INDICATOR for name in names]
    return {indicator.name: indicator for indicator in found}


@cache
def _by_any_name() -> dict[str, Indicator]:
    table: dict[str, Indicator] = {}
    for indicator in all_indicators().values():
        for name in map(plain, (indicator.name, *indicator.aliases)):
            if table.setdefault(name, indicator) is not indicator:
                raise ValueError(f"{name} names both {table[name].name} and {indicator.name}")
    return table


def get(name: str) -> Indicator:
    """The indicator with a name or alias, in any case and with or without spaces between its words.

    Raises `InvalidParameter` with the closest existing name.
    """
    if (found := all_indicators().get(name) or _by_any_name().get(plain(name[:80]))) is not None:
        return found
    known = {each.name: each.aliases for each in all_indicators().values()}
    advice = _with_length(name[:80]) or suggestion(name, known) or "; list_indicators has them all"
    raise InvalidParameter(f"no indicator {name[:80]!r}{advice}")


def _with_length(name: str) -> str:
    """Returns "; did you mean ema_line with length 50?" for ema50, EMA(50) and ema_50; "" if there is no such indicator."""
    form = _NUMBERED.fullmatch(name.strip())
    found = _by_any_name().get(plain(form[1])) if form else None
    if form is None or found is None:
        return ""
    found = _by_any_name().get(plain(found.elsewhere.get("length", "")), found)
    lengths = [each.name for each in found.parameters if "length" in (each.name, *each.aliases)]
    return f"; did you mean {found.name} with {lengths[0]} {form[2]}?" if lengths else f"; did you mean {found.name!r}?"
