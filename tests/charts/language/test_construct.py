"""From sentences to configs: the corpus, determinism, and whatever people type."""

from __future__ import annotations

import random
import string
import time
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest

from openbell.charts.config.reading import read_config
from openbell.charts.language.construct import Wishes, construct, interval_for
from openbell.market.errors import OpenbellError
from openbell.servers.chart_image.configs import wishes_of
from openbell.servers.chart_image.shapes import ConstructInput
from tests.charts.language.corpus import NOW, Entry, held_out, visible
from tests.counts import runs

SENTENCES = runs(600, soak=10_000)
LEAST_HELD_OUT = 0.9
"""The share of sentences that the parser's authors have not read."""


def answer_of(entry: Entry) -> dict[str, Any]:
    """Returns what construct_chart_config answers."""
    try:
        given = ConstructInput.model_validate({"naturalLanguage": entry.say, **entry.args})
        made = construct(entry.say, NOW, wishes_of(given))
    except OpenbellError as error:
        return {"error": error.message}
    return {"config": made.config, "warnings": made.warnings}


@pytest.mark.parametrize("theme", sorted({entry.theme for entry in visible()}))
def test_every_sentence_has_its_config(theme: str) -> None:
    wrong = {
        entry.say: problems
        for entry in visible()
        if entry.theme == theme and (problems := entry.problems(answer_of(entry)))
    }
    assert wrong == {}


def test_sentences_that_were_set_aside_are_counted(record_property: Any) -> None:
    entries = held_out()
    right = sum(not entry.problems(answer_of(entry)) for entry in entries)
    record_property("held_out", f"{right} of {len(entries)}")
    assert right >= LEAST_HELD_OUT * len(entries)


def test_the_contracts_example() -> None:
    wishes = Wishes(exchange="BINANCE", theme="dark")
    made = construct("Show Bitcoin with Bollinger Bands and RSI for the last 7 days", NOW, wishes)
    assert made.config == {
        "symbol": "BINANCE:BTCUSDT",
        "interval": "1h",
        "range": "7D",
        "theme": "dark",
        "style": "candle",
        "width": 1200,
        "height": 675,
        "studies": [
            {"name": "BollingerBands@tv-basicstudies", "inputs": {"length": 20, "stdDev": 2}},
            {"name": "RSI@tv-basicstudies", "inputs": {"length": 14}},
        ],
    }
    assert list(made.config) == ["symbol", "interval", "range", "theme", "style", "width", "height", "studies"]
    assert made.warnings == []
    for words in ("Bitcoin (BINANCE:BTCUSDT)", "'last 7 days'", "'7D'", "interval 1h", "RSI (length 14)"):
        assert words in made.reasoning


@pytest.mark.parametrize(
    ("span", "interval"),
    [
        *(("30MIN", "5m"), ("4H", "5m"), ("6H", "5m"), ("12H", "15m"), ("1D", "1h"), ("7D", "1h"), ("14D", "4h")),
        *(("1M", "4h"), ("2M", "4h"), ("3M", "1D"), ("1Y", "1D"), ("2Y", "1D"), ("5Y", "1W"), ("ALL", "1W")),
        *(("DTD", "5m"), ("WTD", "1h"), ("MTD", "4h"), ("YTD", "1D"), ("2026-03-03/2026-03-17", "4h")),
    ],
)
def test_the_range_chooses_the_interval(span: str, interval: str) -> None:
    assert interval_for(span, NOW) == interval


def test_the_same_sentence_has_the_same_config() -> None:
    for entry in visible()[::40]:
        assert answer_of(entry) == answer_of(entry)


def test_relative_days_follow_the_clock() -> None:
    later = NOW + timedelta(days=7)
    assert construct("BTC since Monday", NOW).config["range"] == "2026-11-16/2026-11-18"
    assert construct("BTC since Monday", later).config["range"] == "2026-11-23/2026-11-25"


# Known defects of other programs


def test_15m_is_not_read_as_5m() -> None:
    assert construct("BTC 15m", NOW).config["interval"] == "15m"
    assert construct("BTC 15 minute chart", NOW).config["interval"] == "15m"


def test_five_years_and_gold_futures_are_reached() -> None:
    assert construct("gold futures, 5 year", NOW).config["range"] == "5Y"
    assert construct("gold futures", NOW).config["symbol"] == "COMEX:GC1!"
    assert construct("gold", NOW).config["symbol"] == "TVC:GOLD"


def test_average_and_index_alone_name_no_study() -> None:
    for sentence in ("the average price of Bitcoin", "BTC stock market index", "an average day of BTC"):
        assert "studies" not in construct(sentence, NOW).config


# Whatever people type

_EXTRA = [
    "",
    "???",
    "🚀",
    "ß",
    "İ",
    "\u202e",
    "\x00",
    "1e999",
    "-" * 40,
    "(" * 30,
    "9" * 40,
    "a" * 300,
    "'",
    '"',
    "%",
    "$",
    "x" * 90,
]


def _sentences(number: int) -> list[str]:
    chance = random.Random(20_261_118)
    words = sorted({word for entry in visible() for word in entry.say.split()})
    found = []
    for _ in range(number):
        parts = chance.choices(words, k=chance.randint(1, 24))
        if chance.random() < 0.4:
            parts[chance.randrange(len(parts))] = chance.choice(_EXTRA)
        if chance.random() < 0.2:
            parts = ["".join(chance.sample(part, len(part))) for part in parts]
        found.append(chance.choice([" ", " ", "", ", ", "/"]).join(parts)[:1000])
    return found


def test_no_sentence_breaks_or_delays_it_and_every_config_is_valid() -> None:
    construct("BTC", NOW)  # the tables
    slowest = 0.0
    for sentence in _sentences(SENTENCES):
        began = time.process_time()
        try:
            made = construct(sentence, NOW)
        except OpenbellError as error:
            assert error.message
        else:
            errors = [each for each in read_config(made.config).problems if each.severity == "error"]
            assert not errors, (sentence, errors)
            assert made.reasoning
        slowest = max(slowest, time.process_time() - began)
    assert slowest < 0.2


def test_a_long_sentence_takes_no_longer_than_its_words() -> None:
    for part in ("btc and 50 ", "ema 20, ", "1 ", "no rsi or ", "from 1 to ", "long from 60k stop "):
        began = time.process_time()
        try:
            construct((part * 400)[:1000], NOW)
        except OpenbellError as error:
            assert error.message
        assert time.process_time() - began < 0.2


def test_attack_sentences_of_new_words_leave_nothing_behind() -> None:
    """A reader who sends other words in every sentence does not fill the memory."""
    chance = random.Random(8)

    def sentence() -> str:
        return "AAPL " + " ".join("".join(chance.choices(string.ascii_lowercase, k=12)) for _ in range(75))

    construct(sentence(), NOW)
    tracemalloc.start()
    try:
        for _ in range(20):
            construct(sentence(), NOW)
        assert tracemalloc.get_traced_memory()[0] < 200_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("sentence", "span"),
    [
        ("BTC for a month", "1M"),
        ("BTC last couple of months", "2M"),
        ("BTC last whole week", "7D"),
        ("BTC 90 days chart", "90D"),
        ("BTC 24h", "1D"),
        ("BTC on February 29", "2024-02-29/2024-02-29"),
        ("BTC on March the 3rd", "2026-03-03/2026-03-03"),
        ("BTC last 30 days RSI", "1M"),
    ],
)
def test_ranges_in_other_words(sentence: str, span: str) -> None:
    assert construct(sentence, NOW).config["range"] == span


@pytest.mark.parametrize(
    ("sentence", "inputs"),
    [
        ("BTC with RSI length of 21", {"length": 21}),
        ("BTC a 20 period RSI", {"length": 20}),
        ("BTC with bollinger bands 2.5 standard deviations", {"length": 20, "stdDev": 2.5}),
        ("BTC with MACD fast 8 slow 17", {"fastLength": 8, "slowLength": 17, "signalLength": 9}),
    ],
)
def test_inputs_of_a_study_in_other_words(sentence: str, inputs: dict[str, float]) -> None:
    assert construct(sentence, NOW).config["studies"][0]["inputs"] == inputs
