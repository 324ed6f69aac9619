"""JSON as services and programs write it is imported; other JSON is refused with a form that works."""

from __future__ import annotations

import json
from typing import Any

import pytest

from openbell.market.errors import BadBars, InvalidParameter
from tests.desk.importing.files import Files, rows_of

START = 1758288600
"""2025-09-19T13:30:00Z"""
BARS = [(START + 60 * n, 10.5, 12.25, 9.0, 11.0 + n % 2, 100.0 + n) for n in range(5)]
NAMES = ("timestamp", "open", "high", "low", "close", "volume")
OBJECTS: list[dict[str, Any]] = [dict(zip(NAMES, bar, strict=True)) for bar in BARS]


def binance(bar: tuple[float, ...]) -> list[Any]:
    """One row of GET /api/v3/klines: prices are texts, times are milliseconds."""
    time, opened, high, low, close, volume = bar
    texts = [f"{each:.8f}" for each in (opened, high, low, close, volume)]
    return [int(time) * 1000, *texts, int(time) * 1000 + 59_999, "2434.19055334", 308, "1756.87", "28.46", "0"]


def letters(bar: tuple[float, ...], iso: bool = False) -> dict[str, Any]:
    named = dict(zip("tohlcv", bar, strict=True))
    minute = (int(bar[0]) - START) // 60
    return {**named, "n": 3, "vw": 10.9, "t": f"2025-09-19T13:{30 + minute}:00Z" if iso else int(bar[0]) * 1000}


FORMS: dict[str, Any] = {
    "array of objects": OBJECTS,
    "array of lists": [[bar[0] * 1000, *bar[1:]] for bar in BARS],
    "lines of objects": "\n".join(map(json.dumps, OBJECTS)) + "\n\n",
    "lines of lists": "\n".join(json.dumps([bar[0] * 1000, *bar[1:]]) for bar in BARS),
    "texts instead of numbers": [{name: str(value) for name, value in row.items()} for row in OBJECTS],
    "whole numbers among others": [{**row, "high": 12.25, "open": 10.5, "low": 9} for row in OBJECTS],
    "an object around a list": {"symbol": "AAPL", "count": 5, "prices": OBJECTS},
    "Binance": [binance(bar) for bar in BARS],
    "Kraken": {
        "error": [],
        "result": {
            "XXBTZUSD": [[bar[0], *map(str, bar[1:5]), "10.9", str(bar[5]), 23] for bar in BARS],
            "last": 1758288600,
        },
    },
    "letters and a named time": [
        {"date": bar[0], **{name: value for name, value in letters(bar).items() if name != "t"}} for bar in BARS
    ],
    "camel case": [{"openTime": bar[0] * 1000, **dict(zip(NAMES[1:], bar[1:], strict=True))} for bar in BARS],
    "Polygon": {"ticker": "AAPL", "status": "OK", "resultsCount": 5, "results": [letters(bar) for bar in BARS]},
    "Alpaca": {"bars": {"AAPL": [letters(bar, iso=True) for bar in BARS]}, "next_page_token": None},
    "columns": {"s": "ok", **{name: [bar[n] for bar in BARS] for n, name in enumerate("tohlcv")}},
}


@pytest.mark.parametrize("form", FORMS)
def test_json_of_services_and_programs_is_read(files: Files, form: str) -> None:
    text = FORMS[form] if isinstance(FORMS[form], str) else json.dumps(FORMS[form])
    found = files.one(text, "prices.json", timeframe="1m")
    assert [tuple(row) for row in rows_of(found.bars)] == BARS


def test_an_object_with_a_list_for_each_symbol_names_them(files: Files) -> None:
    text = json.dumps({"bars": {"AAPL": [letters(bar) for bar in BARS], "MSFT": [letters(bar) for bar in BARS[:3]]}})
    found = files.series(text, "bars.json", symbol=None, timeframe="1m")
    assert [(str(each.bars.instrument), len(each.bars)) for each in found] == [("AAPL", 5), ("MSFT", 3)]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        "[]",
        "[1, 2]",
        "[[1, 2], [3]]",
        '{"a": [[1]], "b": [[2]]}',
        "[" * 5000,
        '{"open": 1',
        '[{"x": {}}, 3]',
    ],
)
def test_other_json_is_refused_with_a_form_that_works(files: Files, text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"JSON that can be read: .*timestamp.* one such object on each line"):
        files.series(text, "prices.json")


def test_a_line_that_is_no_json_is_named(files: Files) -> None:
    text = "\n".join([json.dumps(OBJECTS[0]), json.dumps(OBJECTS[1])[:-1]])
    with pytest.raises(InvalidParameter, match="line 2 is not readable JSON"):
        files.series(text, "prices.jsonl")


def test_a_bad_row_of_json_is_named(files: Files) -> None:
    rows = [OBJECTS[0], {**OBJECTS[1], "high": 1}, *OBJECTS[2:]]
    with pytest.raises(BadBars, match="row 2: "):
        files.series(json.dumps(rows), "prices.json", timeframe="1m")
