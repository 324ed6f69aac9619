"""Every form of a symbol is read into one canonical form; ambiguous symbols are refused."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from openbell.market.errors import InputError, InvalidSymbol
from openbell.market.instruments import COINS, FIAT, QUOTES, STABLE, AssetClass, Instrument, parse

STOCK, CRYPTO, FOREX = AssetClass.STOCK, AssetClass.CRYPTO, AssetClass.FOREX
WATCHLIST = (
    "SPY QQQ IWM AAPL MSFT GOOGL AMZN META NVDA TSLA BBAI RIOT NVDX SMR APLD SOUN SERV ACHR BITQ UEC BTC/USD ETH/USD"
).split()

FORMS = [
    # the design's forms, and those of the five contracts' examples
    ("AAPL", "AAPL", STOCK),
    ("aapl", "AAPL", STOCK),
    ("  AAPL ", "AAPL", STOCK),
    ("F", "F", STOCK),
    ("GOOGL", "GOOGL", STOCK),
    ("NASDAQ:AAPL", "AAPL", STOCK),
    ("nasdaq:aapl", "AAPL", STOCK),
    ("NYSE:BRK.B", "BRK.B", STOCK),
    ("AMEX:SPY", "SPY", STOCK),
    ("BRK.B", "BRK.B", STOCK),
    ("BRK-B", "BRK.B", STOCK),
    ("brk-b", "BRK.B", STOCK),
    ("BTC/USD", "BTC/USD", CRYPTO),
    ("BTC-USD", "BTC/USD", CRYPTO),
    ("BTC_USD", "BTC/USD", CRYPTO),
    ("BTCUSD", "BTC/USD", CRYPTO),
    ("btc_usd", "BTC/USD", CRYPTO),
    ("BTC/USDT", "BTC/USDT", CRYPTO),
    ("BTC-USDT", "BTC/USDT", CRYPTO),
    ("BTC_USDT", "BTC/USDT", CRYPTO),
    ("BTCUSDT", "BTC/USDT", CRYPTO),
    ("btcusdt", "BTC/USDT", CRYPTO),
    ("BINANCE:BTCUSDT", "BTC/USDT", CRYPTO),
    ("BINANCE:BTCBUSD", "BTC/BUSD", CRYPTO),
    ("COINBASE:BTCUSD", "BTC/USD", CRYPTO),
    ("Binance:Btc/Usdt", "BTC/USDT", CRYPTO),
    ("ETH/USD", "ETH/USD", CRYPTO),
    ("ETHBTC", "ETH/BTC", CRYPTO),
    ("EUR/USDT", "EUR/USDT", CRYPTO),
    ("USDC/USDT", "USDC/USDT", CRYPTO),
    ("1INCHUSDT", "1INCH/USDT", CRYPTO),
    ("DOTUSD", "DOT/USD", CRYPTO),
    ("USDTTUSD", "USDT/TUSD", CRYPTO),
    ("EUR/USD", "EUR/USD", FOREX),
    ("EURUSD", "EUR/USD", FOREX),
    ("EUR_USD", "EUR/USD", FOREX),
    ("FX:EURUSD", "EUR/USD", FOREX),
    ("OANDA:USD/JPY", "USD/JPY", FOREX),
    ("FX_IDC:USDJPY", "USD/JPY", FOREX),
]

REFUSED = [
    "",
    " ",
    "#",
    ".",
    "/",
    ":",
    "AAPL:",
    ":AAPL",
    "AAPL MSFT",
    "AAPL,MSFT",
    "AAPL;",
    "AAPL.US",
    "AAPL..B",
    "AAPL/",
    "/AAPL",
    "BRK_B",
    "BRK/B",
    "BRK B",
    "GOOGLE",  # six letters that do not end with a quote currency
    "AAPL1",
    "123",
    "BTC/XXX",
    "BTC//USD",
    "BTC/USD/EUR",
    "BTC USD",
    "BTC\\USD",
    "BTC/BTC",
    "USDUSD",
    "BTCUSDT.P",
    "BTCUSDTPERP",
    "NASDAQ:BTCUSD",
    "BINANCE:AAPL",
    "BINANCE:EURUSD",
    "FX:BTCUSD",
    "NOWHERE:AAPL",
    "NASDAQ:NYSE:AAPL",
    "NASDAQ: AAPL",
    "../../etc/passwd",
    "..",
    "~",
    "BTC_USD/../x",
    "AAPL\x00",
    "AA\nPL",
    "A" * 10_000,
    "BTC/" + "U" * 10_000,
    "' OR 1=1 --",
    "${HOME}",
    "%41APL",
    "BTC⁄USD",  # a fraction slash
    "ＡＡＰＬ",
    "АAPL",  # a Cyrillic A
    "AAPL’",
    "💰/USD",
]

AMBIGUOUS = {
    "USDTUSD": {"USDT/USD", "USD/TUSD"},  # Kraken's symbol for USDT/USD
    "KRAKEN:USDTUSD": {"USDT/USD", "USD/TUSD"},
    "XBTUSD": {"XBT/USD", "XB/TUSD"},
    "ABTUSD": {"ABT/USD", "AB/TUSD"},
}

pairs = st.builds(
    lambda base, quote: f"{base}/{quote}",
    st.one_of(
        st.sampled_from(sorted(COINS | FIAT | STABLE)),
        st.text(string.ascii_uppercase + string.digits, min_size=2, max_size=10),
    ),
    st.sampled_from(sorted(QUOTES)),
)
stocks = st.from_regex(r"[A-Z]{1,5}(\.[A-Z])?", fullmatch=True)
canonical = st.one_of(pairs.filter(lambda pair: len(set(pair.split("/"))) == 2), stocks)


@pytest.mark.parametrize(("text", "symbol", "asset_class"), FORMS)
def test_every_form_of_the_contracts_is_read(text: str, symbol: str, asset_class: AssetClass) -> None:
    assert parse(text) == Instrument(symbol, asset_class)


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_that_is_not_a_symbol_is_refused(text: str) -> None:
    with pytest.raises(InvalidSymbol):
        parse(text)


@pytest.mark.parametrize("text", ["ß", "TſLA", "ıBM", "ﬁ", "ﬀ", "BTCUſDT", "naſdaq:aapl"])
def test_letters_that_only_become_ascii_in_upper_case_are_refused(text: str) -> None:
    with pytest.raises(InvalidSymbol):
        parse(text)


@pytest.mark.parametrize(("text", "ways"), AMBIGUOUS.items())
def test_an_ambiguous_symbol_is_refused_with_all_readings(text: str, ways: set[str]) -> None:
    with pytest.raises(InvalidSymbol) as refused:
        parse(text)
    assert all(way in refused.value.message for way in ways)


def test_dollars_and_tether_are_two_instruments() -> None:
    assert parse("BTC/USD") != parse("BTC/USDT")
    assert parse("BTCUSD") != parse("BTCUSDT")
    assert parse("BTC/USD").file_name != parse("BTC/USDT").file_name


def test_the_name_on_disk_is_not_split_into_a_stock() -> None:
    instrument = parse("BTC_USD")

    assert instrument.symbol == "BTC/USD"
    assert instrument.file_name == "BTC_USD"
    assert str(instrument) == "BTC/USD"


@pytest.mark.parametrize("symbol", WATCHLIST)
def test_the_contracts_watchlist_is_canonical(symbol: str) -> None:
    assert parse(symbol).symbol == symbol
    assert parse(symbol).asset_class is (CRYPTO if "/" in symbol else STOCK)


def test_the_folders_on_disk_are_the_contracts() -> None:
    assert (STOCK.value, CRYPTO.value) == ("stocks", "crypto")


def test_a_refusal_shows_the_accepted_forms_and_a_shortened_text() -> None:
    with pytest.raises(InvalidSymbol) as refused:
        parse("x" * 5000)
    assert isinstance(refused.value, InputError)
    assert "BTC/USD" in refused.value.message
    assert len(refused.value.message) < 200
    assert len(refused.value.details["symbol"]) <= 40


@given(canonical)
@settings(deadline=None, max_examples=300)
@example("USDT/USD")
@example("USD/TUSD")
@example("DO/TUSD")
@example("BRK.B")
def test_canonical_symbols_are_read_as_themselves(symbol: str) -> None:
    instrument = parse(symbol)

    assert instrument.symbol == symbol
    assert parse(instrument.symbol) == instrument
    assert parse(instrument.file_name) == instrument
    assert "/" not in instrument.file_name


@given(canonical, st.integers(0, 2**16 - 1))
@settings(deadline=None, max_examples=200)
def test_case_does_not_matter(symbol: str, flips: int) -> None:
    mixed = "".join(letter.lower() if flips >> at & 1 else letter for at, letter in enumerate(symbol))

    assert parse(symbol.lower()) == parse(mixed) == parse(symbol)


@given(pairs, st.sampled_from("/-_"))
@settings(deadline=None, max_examples=200)
def test_the_separator_does_not_matter(pair: str, separator: str) -> None:
    assert parsed(pair.replace("/", separator)) == parsed(pair)


@given(pairs)
@settings(deadline=None, max_examples=300)
def test_a_pair_without_a_separator_is_read_as_itself_or_refused(pair: str) -> None:
    """It may also be read as a well-known coin with the same letters, or as a stock if it is short enough."""
    joined = pair.replace("/", "")
    found = parsed(joined)
    if found is not None and found.asset_class is not STOCK and found.symbol != pair:
        assert found.symbol.split("/")[0] in COINS | FIAT | STABLE
        assert found.symbol.replace("/", "") == joined


@given(
    st.one_of(
        st.text(max_size=30),
        st.text("AaBbUuSsDdTtCc019/-_.: \t#\x00ſß", max_size=16),
        st.builds("{}:{}".format, st.sampled_from(["NASDAQ", "BINANCE", "FX", "x", "ſ"]), canonical),
        st.text(min_size=200, max_size=400),
    )
)
@settings(deadline=None, max_examples=500)
def test_any_text_is_a_symbol_or_refused(text: str) -> None:
    found = parsed(text)
    if found is None:
        return
    assert text.strip().isascii()
    assert parse(found.symbol) == found
    assert parse(found.file_name) == found
    letters = set(found.file_name)
    assert letters <= set(string.ascii_uppercase + string.digits + "._")
    assert not found.file_name.startswith((".", "_"))
    assert len(found.file_name) <= 16


def parsed(text: str) -> Instrument | None:
    try:
        return parse(text)
    except InvalidSymbol:
        return None
