"""chart-image: its tools agree with each other, and say no more than was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.servers.chart_image_servers import AS_OF, BITCOIN, ChartImage, chart_image


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartImage]:
    """A server without a key, on simulated prices."""
    with chart_image(tmp_path_factory.mktemp("agreement"), AS_OF=AS_OF) as made:
        yield made


def test_a_section_is_short_by_default_and_whole_on_request(desk: ChartImage) -> None:
    for section in ("all", "indicators", "parameters", "exchanges"):
        found = desk.ask("fetch_chart_documentation", section=section)
        assert len(json.dumps(found, separators=(",", ":"))) / 4 <= 1500, section
    for section in ("all", "indicators"):
        short = desk.ask("fetch_chart_documentation", section=section)
        whole = desk.ask("fetch_chart_documentation", section=section, full=True)
        assert "leftOut" not in whole
        listed, every = (each["data"]["indicators"] for each in (short, whole))
        assert len(listed) + short["leftOut"]["indicators"] == len(every) == 93
        assert all(each in every for each in listed)
        names = [each["name"].partition("@")[0] for each in listed]
        names += short["leftOut"]["indicatorNames"].split(", ")
        assert sorted(names) == sorted(each["name"].partition("@")[0] for each in every)


def test_a_config_of_a_symbol_without_bars_is_neither_valid_nor_drawn(desk: ChartImage) -> None:
    config = {**BITCOIN, "symbol": "BINANCE:ZZZZZZ"}
    checked = desk.ask("validate_chart_config", config=config)
    assert (checked["valid"], [each["field"] for each in checked["errors"]]) == (False, ["symbol"])
    refused = desk.call("generate_chart_image", {"config": config})["result"]
    assert refused["isError"] is True
    assert [each["field"] for each in json.loads(refused["content"][0]["text"])["details"]] == ["symbol"]


def test_too_many_drawings_are_a_fault_of_the_drawings(desk: ChartImage) -> None:
    line = {"type": "Horizontal Line", "coordinates": {"price": 50_000}}
    for studies, drawings, field in ((0, 4, "drawings"), (3, 1, "drawings"), (4, 0, "studies"), (4, 1, "studies")):
        given = [{"name": f"{name}@tv-basicstudies"} for name in ("RSI", "MACD", "MA", "ATR")][:studies]
        config = {**BITCOIN, "width": 800, "height": 600, "studies": given, "drawings": [line] * drawings}
        found = desk.ask("validate_chart_config", config=config, planLevel="BASIC")
        errors = [each["field"] for each in found["errors"] if each["severity"] == "error"]
        assert errors == [field], (studies, drawings, found["errors"])


def test_a_search_finds_words_that_begin_with_it(desk: ChartImage) -> None:
    def found(text: str) -> set[str]:
        return {each["symbol"] for each in desk.ask("get_symbols", exchange="BINANCE", search=text)["symbols"]}

    assert "ETHUSDT" in found("eth")
    assert "BTCUSDT" not in found("eth"), "TetherUS has these letters within a word"
    assert "BTCUSDT" in found("tether")
    assert "BTCUSDT" in found("usdt"), "within a name"


def test_a_sentence_is_no_symbol(desk: ChartImage) -> None:
    for symbol in ("Warning: This NVDA rally is unsustainable", "a:b c", "NASDAQ:", ":AAPL", "NASDAQ:AAPL:X"):
        answer = desk.call("construct_chart_config", {"naturalLanguage": "daily candles", "symbol": symbol})["result"]
        assert answer["isError"] is True, symbol
        assert "EXCHANGE:SYMBOL" in json.loads(answer["content"][0]["text"])["error"]
    made = desk.ask("construct_chart_config", naturalLanguage="daily candles", symbol="nasdaq:nvda")
    assert made["config"]["symbol"] == "NASDAQ:NVDA"
