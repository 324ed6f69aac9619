"""The instruments and exchanges that sentences can name."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from openbell.charts.language.instruments import exchanges
from openbell.charts.language.instruments.catalogue import FIAT, all_instruments, by_name, by_ticker
from openbell.charts.language.instruments.named import InstrumentKind, Named
from openbell.charts.studies.catalogue import all_studies

SYMBOL = re.compile(r"[A-Z_]+:[A-Z0-9.]+!?")
WORD = re.compile(r"[a-z0-9&'.!-]+( [a-z0-9&'.-]+)*")


def find(word: str) -> Named:
    return by_name().get(word) or by_ticker()[word]


def test_symbols_have_an_exchange_and_are_unique() -> None:
    symbols = [each.symbol for each in all_instruments()]
    assert [symbol for symbol in symbols if not SYMBOL.fullmatch(symbol)] == []
    assert [symbol for symbol, count in Counter(symbols).items() if count > 1] == []


def test_the_table_covers_what_people_ask_for() -> None:
    counts = Counter(each.kind for each in all_instruments())
    assert len(all_instruments()) >= 200
    least = {
        InstrumentKind.CRYPTO: 50,
        InstrumentKind.STOCK: 90,
        InstrumentKind.ETF: 15,
        InstrumentKind.INDEX: 20,
        InstrumentKind.FOREX: 25,
        InstrumentKind.FUTURE: 25,
    }
    assert {kind: counts[kind] for kind, count in least.items() if counts[kind] < count} == {}


def test_a_word_names_one_instrument() -> None:
    owners: dict[str, set[str]] = {}
    for each in all_instruments():
        for word in (*each.names, *each.tickers):
            owners.setdefault(word, set()).add(each.symbol)
    assert {word: symbols for word, symbols in owners.items() if len(symbols) > 1} == {}
    assert all(each.names or each.tickers for each in all_instruments())


def test_words_are_lower_case_and_without_marks_that_separate_words() -> None:
    found = [word for each in all_instruments() for word in (*each.names, *each.tickers)]
    found += [word for each in exchanges.EXCHANGES for word in each.names]
    assert [word for word in found if not WORD.fullmatch(word)] == []


def test_ambiguous_words_belong_to_their_instrument() -> None:
    wrong = {each.symbol: each.ambiguous - {*each.names, *each.tickers} for each in all_instruments()}
    assert {symbol: words for symbol, words in wrong.items() if words} == {}


def test_words_with_another_meaning_are_ambiguous() -> None:
    studies = {phrase for study in all_studies().values() for phrase in (study.title.lower(), *study.phrases)}
    ordinary = set("all it now on key low near link dot etc net snow spot shop cost cat ups coin hood".split())
    ordinary |= set("op apt vet sand cake target gap block zoom snap stellar optimism hd ai de".split())
    exchange_names = set(exchanges.exchanges_by_name())
    for each in all_instruments():
        for word in (*each.names, *each.tickers):
            if len(word) == 1 or word in ordinary | studies | exchange_names:
                assert each.is_ambiguous(word), f"{word} of {each.symbol}"


def test_instruments_are_found_by_names_nicknames_and_tickers() -> None:
    expected = {
        "bitcoin": "BINANCE:BTCUSDT",
        "xbt": "BINANCE:BTCUSDT",
        "google": "NASDAQ:GOOGL",
        "facebook": "NASDAQ:META",
        "s&p 500": "SP:SPX",
        "dow": "DJ:DJI",
        "vix": "TVC:VIX",
        "dollar index": "TVC:DXY",
        "us10y": "TVC:US10Y",
        "cable": "FX:GBPUSD",
        "loonie": "FX:USDCAD",
        "gold": "TVC:GOLD",
        "gold futures": "COMEX:GC1!",
        "spy": "AMEX:SPY",
        "oil": "TVC:USOIL",
        "crude oil futures": "NYMEX:CL1!",
        "ma": "NYSE:MA",
    }
    assert {word: find(word).symbol for word in expected} == expected


def test_exchanges_write_symbols_in_their_own_way() -> None:
    table = exchanges.exchanges_by_id()
    bitcoin, euro, gold, apple = find("bitcoin"), find("eurusd"), find("gold"), find("apple")
    assert table["BINANCE"].symbol_of(bitcoin) == "BINANCE:BTCUSDT"
    assert table["COINBASE"].symbol_of(bitcoin) == "COINBASE:BTCUSD"
    assert table["KRAKEN"].symbol_of(bitcoin, "eur") == "KRAKEN:BTCEUR"
    assert table["BITMEX"].symbol_of(bitcoin) == "BITMEX:XBTUSD"
    assert table["UPBIT"].symbol_of(find("ether")) == "UPBIT:ETHKRW"
    assert table["OANDA"].symbol_of(euro) == "OANDA:EURUSD"
    assert table["OANDA"].symbol_of(gold) == "OANDA:XAUUSD"
    assert table["NASDAQ"].lists(apple)
    assert not table["NYSE"].lists(apple)
    assert not table["BINANCE"].lists(euro)


@pytest.mark.parametrize("each", exchanges.EXCHANGES, ids=lambda each: each.id)
def test_exchanges_have_a_quote_if_they_list_crypto(each: exchanges.NamedExchange) -> None:
    assert bool(each.quote) == (InstrumentKind.CRYPTO in each.kinds)
    assert all(exchanges.exchanges_by_name()[name] is each for name in each.names)


def test_pairs_are_of_known_currencies() -> None:
    pairs = [each.code for each in all_instruments() if each.kind is InstrumentKind.FOREX]
    assert [code for code in pairs if code[:3] not in FIAT or code[3:] not in FIAT] == []
