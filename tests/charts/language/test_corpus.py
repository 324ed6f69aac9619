"""The corpus itself: every entry is valid, and the held-out part needs nothing that the visible part does not show."""

from __future__ import annotations

import calendar
import re
from collections import Counter
from datetime import timedelta

import pytest

from openbell.charts.config.choices import INTERVALS, LEAST_HEIGHT, LEAST_WIDTH, SCALES, STYLES, THEMES
from openbell.charts.config.model import KINDS, TYPES, Coordinate
from openbell.charts.config.ranges import bounds_of, read_range
from openbell.charts.language.instruments import exchanges
from openbell.charts.language.instruments.catalogue import FIAT, all_instruments
from openbell.charts.studies.catalogue import all_studies
from tests.charts.language.corpus import DEFAULTS, NOW, Entry, expanded_study, held_out, visible

VISIBLE, HELD_OUT = visible(), held_out()
ALL = [*VISIBLE, *HELD_OUT]
SYMBOL = re.compile(r"[A-Z_]+:[A-Z0-9.]+!?")
CONFIGS = [entry for entry in ALL if not entry.error]


def test_the_corpus_is_large_and_one_fifth_is_held_out() -> None:
    assert len(ALL) >= 500
    assert sum(bool(entry.error) for entry in ALL) >= 40
    # What readers tried later has no part that the parser's authors have not read.
    by_theme = Counter(entry.theme for entry in ALL if entry.theme != "doubts")
    held = Counter(entry.theme for entry in HELD_OUT)
    assert {theme: held[theme] for theme in by_theme} == {theme: count // 5 for theme, count in by_theme.items()}


def test_sentences_are_unique() -> None:
    assert [say for say, count in Counter(entry.say for entry in ALL).items() if count > 1] == []


def test_an_entry_has_a_config_or_an_error() -> None:
    assert [entry.say for entry in ALL if bool(entry.config) == bool(entry.error)] == []
    assert [entry.say for entry in ALL if entry.error and entry.warns] == []
    assert {name for entry in ALL for name in entry.args} == {"symbol", "exchange", "preferences"}


def test_fields_have_allowed_values_and_differ_from_the_defaults() -> None:
    allowed = {"theme": THEMES, "style": STYLES, "scale": SCALES, "interval": INTERVALS}
    for entry in CONFIGS:
        assert set(entry.config) <= {"symbol", *DEFAULTS}, entry.say
        assert SYMBOL.fullmatch(entry.config["symbol"]), entry.say
        assert [name for name, value in entry.config.items() if DEFAULTS.get(name) == value] == [], entry.say
        assert all(entry.expected[name] in values for name, values in allowed.items()), entry.say
        assert entry.expected["width"] >= LEAST_WIDTH, entry.say
        assert entry.expected["height"] >= LEAST_HEIGHT, entry.say


def test_ranges_are_valid_and_do_not_reach_into_the_future() -> None:
    midnight = NOW.replace(hour=0) + timedelta(days=1)
    for entry in CONFIGS:
        if (written := entry.config.get("range")) is not None:
            assert read_range(written) == written, entry.say
            assert bounds_of(written, NOW).end <= midnight, entry.say


def test_symbols_are_of_the_table_or_of_an_exchange_that_the_sentence_names() -> None:
    known = {each.symbol for each in all_instruments()} | {f"FX:{one}{two}" for one in FIAT for two in FIAT}
    for entry in CONFIGS:
        exchange = entry.config["symbol"].partition(":")[0]
        asked = exchanges.exchanges_by_id()[exchange].names if exchange in exchanges.exchanges_by_id() else ()
        text = f"{entry.say} {entry.args}".lower()
        pairs = exchange == "BINANCE"
        assert entry.config["symbol"] in known or pairs or any(each in text for each in (exchange.lower(), *asked)), (
            entry.say
        )


def test_all_studies_are_covered_with_and_without_inputs() -> None:
    for entries in (ALL, VISIBLE):
        written = [text for entry in entries for text in entry.config.get("studies", ())]
        found = {expanded_study(text)["name"] for text in written}
        assert set(all_studies()) - found == set()
    assert len(all_studies()) == 93
    texts = {text for entry in ALL for text in entry.config.get("studies", ())}
    alone = {text for text in texts if " " not in text}
    with_inputs = {text.split()[0] for text in texts if " " in text}
    for study in all_studies().values():
        assert study.short in alone, study.short
        has_inputs = any(not each.extra for each in study.inputs)
        assert (study.short in with_inputs) == has_inputs, study.short


def test_all_styles_themes_and_scales_are_covered_by_the_visible_part() -> None:
    for name, values in (("style", STYLES), ("theme", THEMES), ("scale", SCALES)):
        assert {entry.expected[name] for entry in VISIBLE if not entry.error} == set(values)


def test_drawings_have_the_coordinates_of_their_kind() -> None:
    for entry in CONFIGS:
        for drawing in entry.expected["drawings"]:
            kind = KINDS[drawing["type"]]
            assert set(kind.required) <= set(drawing["coordinates"]) <= set(kind.coordinates), entry.say
            for name, value in drawing["coordinates"].items():
                assert isinstance(value, int | float) == (TYPES[name] is Coordinate.PRICE), entry.say
    shown = {drawing["type"] for entry in VISIBLE for drawing in entry.config.get("drawings", ())}
    assert {drawing["type"] for entry in HELD_OUT for drawing in entry.config.get("drawings", ())} <= shown


def test_held_out_sentences_have_no_words_that_the_parser_cannot_know() -> None:
    known = {word for entry in VISIBLE for word in words(entry.say)}
    for instrument in all_instruments():
        known.update(word for name in (*instrument.names, *instrument.tickers) for word in words(name))
    known.update(word for each in exchanges.EXCHANGES for name in each.names for word in words(name))
    known.update(word for code, names in FIAT.items() for name in (code, *names) for word in words(name))
    known.update(form.lower() for month in calendar.month_name for form in (month, month[:3]))
    for study in all_studies().values():
        known.update(word for name in (study.short, study.title, *study.phrases) for word in words(name))
    unknown = {
        word: entry.say
        for entry in HELD_OUT
        if not entry.error and entry.theme != "misspelt"
        for word in words(entry.say)
        if word not in known
    }
    assert unknown == {}


def words(text: str) -> set[str]:
    """The words of a text that are no codes or pairs, such as `4h` or `EURUSD`."""
    found = re.findall(r"[^\W_]+", text.replace("'s ", " "))
    return {
        word.lower() for word in found if word.isalpha() and not (len(word) >= 6 and word.lower()[-3:].upper() in FIAT)
    }


@pytest.mark.parametrize(
    ("written", "inputs"),
    [
        ("RSI", {"length": 14}),
        ("BollingerBands 30", {"length": 30, "stdDev": 2.0}),
        ("BollingerBands stdDev=2.5", {"length": 20, "stdDev": 2.5}),
        ("MACD 8 21 5", {"fastLength": 8, "slowLength": 21, "signalLength": 5}),
        ("Volume", {}),
    ],
)
def test_studies_are_expanded_with_the_inputs_of_the_catalogue(written: str, inputs: dict[str, float]) -> None:
    name = written.split(maxsplit=1)[0]
    assert expanded_study(written) == {"name": f"{name}@tv-basicstudies", "inputs": inputs}


def test_an_entry_expands_to_the_example_of_the_contract() -> None:
    say = "Show Bitcoin with Bollinger Bands and RSI over the last 7 days"
    entry = next(entry for entry in ALL if entry.say == say)
    config = {
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
    assert entry.problems({"success": True, "config": config, "warnings": []}) == []


def test_an_answer_is_compared_with_its_entry() -> None:
    entry = Entry("x", "btc 4h, support at 60k", config={"symbol": "A:B", "interval": "4h"}, warns=("ETHUSDT",))
    right = {"symbol": "A:B", "interval": "4h"}
    assert entry.problems({"config": right, "warnings": ["BINANCE:ETHUSDT is left out"]}) == []
    assert entry.problems({"config": right, "warnings": []}) == ["no warning contains 'ETHUSDT'"]
    assert entry.problems({"error": "no instrument"}) == ["error 'no instrument'"]
    wrong = {"config": {**right, "interval": "1h", "session": "extended"}, "warnings": ["ethusdt"]}
    assert entry.problems(wrong) == ["interval: '1h' must be '4h'", "session: 'extended' must be None"]
    silent = Entry("x", "btc", config={"symbol": "A:B"})
    assert silent.problems({"config": {"symbol": "A:B"}, "warnings": ["?"]}) == ["warnings ['?'] must be none"]
    refused = Entry("x", "hello", error="instrument")
    assert refused.problems({"error": "No instrument in the sentence"}) == []
    assert refused.problems({"config": right, "warnings": []}) == ["error '' must contain 'instrument'"]
