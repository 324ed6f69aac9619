"""Chooses the instrument and the exchange among those that a sentence and a client name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from openbell.charts.config.model import SYMBOL
from openbell.charts.language.assets import AssetFound, ExchangeFound, PerpetualFound, assets_in
from openbell.charts.language.instruments.catalogue import by_name, by_ticker
from openbell.charts.language.instruments.exchanges import NamedExchange, exchanges_by_id, joined_pair
from openbell.charts.language.instruments.named import InstrumentKind
from openbell.charts.language.spans import Detection, longest
from openbell.charts.language.words import Word, common_words, words_of
from openbell.market.errors import InputError
from openbell.market.instruments import CRYPTO_VENUES, FOREX_VENUES
from openbell.market.nearest import did_you_mean

Found = Detection[Any]
_JOINS = frozenset({"and", "or", "vs", "versus", "against", "with", ",", "&", "v", "to", "than"})
_ARTICLES = frozenset({"the", "a", "an"})
_MOST_STRANGE = 8
"""Words of a sentence for which the nearest name is looked up; each takes 1 to 2 ms."""


class NoInstrument(InputError):
    """A sentence names no instrument, or `symbol` is none."""


@dataclass(slots=True)
class Choice:
    """The symbol, why it was chosen, and what is ambiguous."""

    symbol: str
    reason: str
    warnings: list[str] = field(default_factory=list)


def choose(words: Sequence[Word], found: Sequence[Found], symbol: str, exchange: str, sentence: str) -> Choice:
    """Returns the symbol. Raises `NoInstrument` if neither the sentence nor the client names one."""
    assets, weak_only = _counted(words, found)
    told = _exchange(found)
    wanted, warnings = exchange.strip().upper(), list[str]()
    if told is not None and wanted and told.id != wanted:
        warnings.append(f"the sentence asks for {told.id}; the argument exchange {wanted} is not used")
    wanted = told.id if told is not None else wanted
    if symbol.strip():
        chosen = asset_of(symbol.strip(), wanted)
        reason = "from the argument symbol"
        others = [each for each in assets if not each.meaning.weak]
    else:
        if not assets:
            raise NoInstrument(
                f"no instrument found in the sentence{_nearest(words)}: name one, such as Bitcoin, AAPL, EUR/USD or "
                "BINANCE:BTCUSDT"
            )
        first, *others = assets
        chosen, reason = first.meaning, f"from {_quoted(sentence, words, first)!r}"
        if weak_only and not words[first.start].titled and not words[first.start].caps:
            warnings.append(f"{chosen.title!r} was read as {chosen.symbol}; write the symbol if you mean another one")
    final, warning = on_exchange(chosen, exchanges_by_id().get(wanted), wanted)
    warnings += [warning] if warning else []
    if any(isinstance(each.meaning, PerpetualFound) for each in found) and not final.endswith(".P"):
        final += ".P" if _is_coin(chosen) else ""
    named = dict.fromkeys(each.meaning.symbol for each in others if each.meaning.symbol != chosen.symbol)
    if named:
        warnings.append(
            f"one chart shows one instrument: {final}; {', '.join(named)} {'is' if len(named) == 1 else 'are'} not shown"
        )
    title = chosen.named.names[0].title() if chosen.named and chosen.named.names else chosen.title
    return Choice(final, f"Detected {title} ({final}) {reason}", warnings)


def _nearest(words: Sequence[Word]) -> str:
    """Returns a question with the name that is nearest to a word that is no common one.

    Only the first few of these words are compared: each is compared with every name.
    """
    names = [*by_name(), *by_ticker()]
    texts = dict.fromkeys(word.text for word in words if not word.is_number and 3 <= len(word.text) <= 24)
    strange = islice((text for text in texts if text not in common_words()), _MOST_STRANGE)
    return next(filter(None, (did_you_mean(text, names) for text in strange)), "")


def _quoted(sentence: str, words: Sequence[Word], found: Found) -> str:
    return sentence[words[found.start].start : words[found.end - 1].end]


def _is_coin(found: AssetFound) -> bool:
    return bool(found.quote) or (found.named is not None and found.named.kind is InstrumentKind.CRYPTO)


def _counted(words: Sequence[Word], found: Sequence[Found]) -> tuple[list[Found], bool]:
    """Returns the instruments that count, and whether they count only because there is no other."""
    every = [each for each in found if isinstance(each.meaning, AssetFound)]
    sure = [each for each in every if not each.meaning.weak]
    if not sure:
        return every[:1] + [each for each in every[1:] if _joined(words, every[0], each)], True
    joined = [
        each
        for each in every
        if each.meaning.weak and (_compared(words, each) or any(_joined(words, each, other) for other in sure))
    ]
    return sorted([*sure, *joined], key=lambda each: each.start), False


def _compared(words: Sequence[Word], found: Found) -> bool:
    """Returns True for `compared with nasdaq`."""
    before = [word.text for word in words[max(0, found.start - 3) : found.start] if word.text not in _ARTICLES]
    return before[-2:-1] in (["compared"], ["compare"]) and before[-1:] in (["with"], ["to"])


def _joined(words: Sequence[Word], one: Found, other: Found) -> bool:
    """Returns True if two instruments are joined: `Visa vs Mastercard`, `compare gap with target`."""
    first, second = sorted((one, other), key=lambda each: each.start)
    between = [word.text for word in words[first.end : second.start]]
    joins = [text for text in between if text not in _ARTICLES]
    if len(joins) != 1 or joins[0] not in _JOINS:
        return False
    if joins[0] == "," and all(words[each.start].titled for each in (first, second)):
        return True
    if joins[0] in {"with", ",", "to", "than"}:
        return any(word.text in {"compare", "compared", "comparing"} for word in words[: first.start])
    return True


def _exchange(found: Sequence[Found]) -> NamedExchange | None:
    for each in found:
        if isinstance(each.meaning, ExchangeFound):
            return each.meaning.exchange
    return None


def asset_of(symbol: str, exchange: str) -> AssetFound:
    """Returns the instrument of the argument `symbol`: EXCHANGE:SYMBOL, a pair, a ticker or a name."""
    if SYMBOL.fullmatch(symbol.upper()) and symbol.isascii():
        return AssetFound(symbol, symbol.upper(), explicit=True)
    if (pair := joined_pair(symbol)) is not None:
        return AssetFound(symbol, *pair)
    words = words_of(symbol.upper() if len(symbol) <= 6 else symbol)
    text = symbol.upper() if len(symbol) <= 6 else symbol
    whole = [
        each.meaning
        for each in longest(_instruments(text, words))
        if each.start == 0 and each.end == len(words) and isinstance(each.meaning, AssetFound)
    ]
    if whole:
        return whole[0]
    plain = symbol.replace(".", "").replace("!", "")
    if exchange and plain.isalnum() and len(symbol) <= 30 and symbol.isascii():
        return AssetFound(symbol, f"{exchange}:{symbol.upper()}", explicit=True)
    advice = "write it as EXCHANGE:SYMBOL, such as BINANCE:BTCUSDT"
    raise NoInstrument(f"symbol {symbol[:40]!r} is not known: {advice}", symbol=symbol[:40])


def _instruments(text: str, words: Sequence[Word]) -> list[Found]:
    # A lower-case tail keeps capitals meaningful for tickers that are words.
    return [each for each in assets_in(text + " x", words) if isinstance(each.meaning, AssetFound)]


def on_exchange(found: AssetFound, exchange: NamedExchange | None, wanted: str) -> tuple[str, str]:
    """Returns the symbol of an instrument on an exchange that was asked for, and a warning if it is not listed there."""
    if not wanted or found.symbol.startswith(f"{wanted}:"):
        return found.symbol, ""
    if found.explicit:
        return found.symbol, f"{found.symbol} names its exchange; {wanted} is not used"
    if found.named is not None and exchange is not None and exchange.lists(found.named):
        quote = "" if found.quote == "USD" else found.quote
        return exchange.symbol_of(found.named, quote), ""
    code = found.symbol.partition(":")[2]
    kind = found.named.kind if found.named else None
    if kind in {None, InstrumentKind.CRYPTO} and found.quote and (wanted in CRYPTO_VENUES or exchange is not None):
        return f"{wanted}:{code}", ""
    if found.symbol.startswith("FX:") and (
        wanted in FOREX_VENUES or (exchange and InstrumentKind.FOREX in exchange.kinds)
    ):
        return f"{wanted}:{code}", ""
    return found.symbol, f"{found.title} is not known on {wanted}; {found.symbol} is used"
