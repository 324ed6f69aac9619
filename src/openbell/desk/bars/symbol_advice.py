"""Adds to an error on a symbol the nearest symbols that this desk has bars of. The symbol itself is never guessed.

What is stored shows what others have asked for: only the operator gets suggestions from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from openbell.desk.settings.principals import OPERATOR
from openbell.market.errors import InputError, InvalidSymbol, NotCovered, OpenbellError, UnknownSymbol
from openbell.market.instruments import AssetClass, Instrument, nearest_symbols, parse
from openbell.stores.threads import CALLER

if TYPE_CHECKING:
    from openbell.desk.bars.service import BarService
    from openbell.desk.bars.watchlist import WatchlistFile

_MARK = "; did you mean "
_TRIED = 12
"""The most near symbols that are checked for bars."""
_SHOWN = 3


class SymbolAdvice:
    """Suggests symbols of the watchlist, of the feed's list and of the store."""

    def __init__(self, bars: Callable[[], BarService], watchlist: WatchlistFile) -> None:
        """`bars` is called when a suggestion is asked for: commands without an error need no bars."""
        self._bars = bars
        self._watchlist = watchlist

    async def add_to(self, error: BaseException | None, not_covered: Mapping[AssetClass, str] | None = None) -> None:
        """Add suggestions to the message of an error on a symbol. Does nothing to any other error.

        `not_covered` has the classes that the caller refuses, and where they are covered: that is said instead.
        """
        if not isinstance(error, InputError | UnknownSymbol) or isinstance(error, NotCovered) or _MARK in error.message:
            return
        if symbol := error.details.get("symbol"):
            error.message += await self.hint(str(symbol), not_covered or {})

    def hint_of_lists(self, symbol: str) -> str:
        """Returns what `hint` does from the watchlist and the feed's list alone."""
        feed = self._bars().feed
        listed = [each for each in (*self._watchlist.read().instruments, *feed.listed()) if feed.supports(each)]
        return _asked(symbol, nearest_symbols(symbol, listed)[:_SHOWN])

    async def hint(
        self,
        symbol: str,
        not_covered: Mapping[AssetClass, str] | None = None,
        written: Callable[[Instrument], str] = str,
    ) -> str:
        """Returns "; did you mean 'BTC/USD' or 'BTC/USDT'?"; "" if no symbol is near. `written` spells a suggestion."""
        refused = not_covered or {}
        with suppress(OpenbellError):  # the store cannot be read: the error is told without suggestions
            bars = self._bars()
            listed = [*(await self._watchlist.current()).instruments, *bars.feed.listed()]
            known = [*listed, *await stored_instruments(bars)]
            near = nearest_symbols(symbol, known, _TRIED)
            if not near:  # in a thread, because loading the names takes half a second the first time
                near = await bars.threads.run(_by_name, symbol, known)
            # A stored symbol may have only bars that are later than the clock, a watched one none at all.
            found = [each for each in near if await bars.known(each)]
            covered = [each for each in found if each.asset_class not in refused]
            if found and not covered:
                return f"; {refused[found[0].asset_class]}"
            return _asked(symbol, covered[:_SHOWN], written)
        return ""


async def stored_instruments(bars: BarService) -> list[Instrument]:
    """Returns the stored instruments that the caller may know of, sorted: the operator all, others none."""
    if CALLER.get() not in {"", OPERATOR}:
        return []
    return sorted({series.instrument for series in await bars.threads.run(bars.store.stored)})


def _asked(symbol: str, found: list[Instrument], written: Callable[[Instrument], str] = str) -> str:
    """Returns the question; "" if the symbol that was asked for is among the found: its spelling is not what is wrong."""
    with suppress(InvalidSymbol):
        if parse(symbol) in found:
            return ""
    return f"{_MARK}{' or '.join(repr(written(each)) for each in found)}?" if found else ""


def _by_name(text: str, known: Iterable[Instrument]) -> list[Instrument]:
    """Returns the known instruments of a name such as Bitcoin or Apple."""
    from openbell.charts.language.choosing import NoInstrument, asset_of

    try:
        named = parse(asset_of(text[:40].rpartition(":")[2], "").symbol)
    except (NoInstrument, InvalidSymbol):
        return []
    return nearest_symbols(named.symbol.partition("/")[0], known, _TRIED)
