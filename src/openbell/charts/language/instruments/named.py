"""The type `Named`: an instrument and the words by which sentences name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class InstrumentKind(StrEnum):
    """What an instrument is. It decides which exchanges a sentence can ask for."""

    CRYPTO = "crypto"
    STOCK = "stock"
    ETF = "etf"
    INDEX = "index"
    FOREX = "forex"
    COMMODITY = "commodity"
    FUTURE = "future"


@dataclass(frozen=True, slots=True)
class Named:
    """One instrument."""

    symbol: str
    """EXCHANGE:SYMBOL of the listing that is used if the sentence asks for no exchange."""
    kind: InstrumentKind
    names: tuple[str, ...] = ()
    """What people call it, in lower case: company, brand, nickname. May have several words."""
    tickers: tuple[str, ...] = ()
    """Short codes, in lower case. A sentence may write them as `$btc` as well."""
    ambiguous: frozenset[str] = frozenset()
    """Those of the names and tickers that are also English words or abbreviations of the field.

    Such a ticker (`all`, `near`, `ma`) counts only in capitals, or as `$ma`. Such a name (`target`, `visa`) counts only
    where the rules of the parser allow it: it is capitalised, it is joined with another instrument, or the sentence has
    no other.
    """
    listings: Mapping[str, str] = field(default_factory=dict)
    """Symbols on other exchanges, where the rule of the exchange (`exchanges.Exchange.symbol_of`) would be wrong."""

    @property
    def exchange(self) -> str:
        """The exchange of the default listing."""
        return self.symbol.partition(":")[0]

    @property
    def code(self) -> str:
        """The symbol without its exchange."""
        return self.symbol.partition(":")[2]

    @property
    def base(self) -> str:
        """The currency that is priced, for crypto and forex: `BTC`, `EUR`. The code for others."""
        if self.kind is InstrumentKind.CRYPTO:
            return self.code.removesuffix("USDT")
        return self.code[:3] if self.kind is InstrumentKind.FOREX else self.code

    def is_ambiguous(self, text: str) -> bool:
        """Returns True if a name or ticker, in any case, is ambiguous."""
        return text.lower() in self.ambiguous


def words(text: str) -> tuple[str, ...]:
    """Returns the parts of a list that is written as `bitcoin, digital gold`."""
    return tuple(part for each in text.split(",") if (part := each.strip()))
