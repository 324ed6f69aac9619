"""Query parameters: what is accepted, and that everything else is a validation error that names the field."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.quotes.arche.errors import ApiFault
from openbell.desk.quotes.arche.requests import read_historical, read_live
from tests.counts import runs

FUZZED = runs(300, soak=5000)
RANGE = {"tickers": "AAPL", "from": "2026-01-05", "to": "2026-01-09", "interval": "1d"}


def pairs(**changed: str | None) -> list[tuple[str, str]]:
    """A good request with some parameters changed; None leaves one out."""
    given = RANGE | {name.rstrip("_"): value for name, value in changed.items()}
    return [(name, value) for name, value in given.items() if value is not None]


def faults(params: list[tuple[str, str]], read: Any = read_historical) -> dict[str, str]:
    """The reason of each field that is refused."""
    with pytest.raises(ApiFault) as refused:
        read(params)
    assert refused.value.code == "VALIDATION_ERROR"
    assert len(refused.value.message) <= 1000
    return {each["field"]: each["reason"] for each in refused.value.faults}


def names(text: str) -> list[str]:
    return [each.symbol for each in read_live([("tickers", text)]).instruments]


def test_tickers_are_read_in_any_case_and_form_and_each_once_in_their_order() -> None:
    assert names("msft, aapl,BTC-USD,MSFT,btcusd,NASDAQ:AAPL") == ["MSFT", "AAPL", "BTC/USD"]


def test_a_text_of_the_form_of_a_ticker_is_unknown_and_no_mistake() -> None:
    found = read_live([("tickers", "AAPL,zzzzzz,ZZZZZZ,USDTUSD:X")])
    assert [each.symbol for each in found.instruments] == ["AAPL"]
    assert [each.ticker for each in found.unknown] == ["ZZZZZZ", "USDTUSD:X"]
    assert not any(each.known for each in found.unknown)


@pytest.mark.parametrize(
    "text",
    ["", " ", ",", "AAPL,", ",AAPL", "AAPL,,MSFT", "A APL", "AAPL;MSFT", "A" * 65, "ÄAPL", "<b>", "AAPL\n,'", "-"],
)
def test_a_text_that_cannot_be_a_ticker_is_refused(text: str) -> None:
    assert set(faults([("tickers", text)], read_live)) == {"tickers"}
    assert set(faults(pairs(tickers=text))) == {"tickers"}


def test_fifty_tickers_are_the_most_on_both_paths() -> None:
    fifty = [f"A{a}{b}" for a in string.ascii_uppercase[:10] for b in string.ascii_uppercase[:5]]
    assert names(",".join(fifty)) == fifty
    assert len(read_historical(pairs(tickers=",".join(fifty))).tickers.instruments) == 50
    for more in ("ZZZZ", "AAA"):  # the last one is repeated
        text = ",".join([*fifty, more])
        assert "51 tickers" in faults([("tickers", text)], read_live)["tickers"]
        assert "51 tickers" in faults(pairs(tickers=text))["tickers"]


def test_a_range_has_both_of_its_days() -> None:
    span = read_historical(pairs()).span
    assert (span.start, span.end) == (1767571200, 1767571200 + 5 * 86400)
    one = read_historical(pairs(from_="2026-01-09")).span
    assert one.end - one.start == 86400


def test_a_range_has_at_most_365_days() -> None:
    assert read_historical(pairs(from_="2025-01-01", to="2025-12-31")).span.end == 1767225600
    assert "366 days" in faults(pairs(from_="2025-01-01", to="2026-01-01"))["to"]
    assert "366 days" in faults(pairs(from_="2024-01-01", to="2024-12-31"))["to"], "a leap year"
    assert set(faults(pairs(from_="0001-01-01", to="9999-12-31"))) == {"to"}


def test_the_first_and_last_days_that_dates_have_are_no_error() -> None:
    assert read_historical(pairs(from_="0001-01-01", to="0001-01-02")).span.end < 0
    assert read_historical(pairs(from_="9999-12-31", to="9999-12-31")).span.end == 253402300800


def test_from_after_to_is_refused() -> None:
    assert faults(pairs(from_="2026-01-10"))["from"] == "is after to"


@pytest.mark.parametrize(
    "text",
    ["", "today", "2026-1-5", "20260105", "2026-W02-1", "2026-02-30", "2026-13-01", "0000-01-01", "2026-01-05T00:00:00",
     "05.01.2026", " 2026-01-05", "２０２６-01-05", "-026-01-05", "2026-01-05\n"],
)  # fmt: skip
def test_a_text_that_is_no_date_is_refused(text: str) -> None:
    assert set(faults(pairs(from_=text, to=text))) == {"from", "to"}


@pytest.mark.parametrize("text", ["", "1D", "1h", "1min", "5m", "1d ", "d", "1d,1m"])
def test_an_interval_is_one_of_two_words(text: str) -> None:
    assert "use 1d or 1m" in faults(pairs(interval=text))["interval"]


def test_pages_have_their_defaults_and_bounds() -> None:
    found = read_historical(pairs())
    assert (found.page, found.page_size) == (1, 50)
    found = read_historical(pairs(page="7", page_size="200"))
    assert (found.page, found.page_size) == (7, 200)
    for text in ("0", "-1", "1.0", "+1", "1e2", "", " 1", "one", "٣", "9" * 5000):
        assert set(faults(pairs(page=text, page_size=text))) == {"page", "page_size"}, text
    assert "from 1 to 200" in faults(pairs(page_size="201"))["page_size"]


@pytest.mark.parametrize("name", list(RANGE))
def test_what_is_missing_repeated_or_unknown_is_named(name: str) -> None:
    without = [pair for pair in pairs() if pair[0] != name]
    assert faults(without) == {name: "is required"}
    assert faults([*pairs(), (name, RANGE[name])]) == {name: "is given 2 times"}
    assert set(faults([*pairs(), (f"{name}_", "x"), ("X" * 500, "")])) == {f"{name}_", "X" * 40}


def test_every_fault_of_a_request_is_named_at_once() -> None:
    wrong = pairs(tickers="", from_="x", to="y", interval="z", page="0", page_size="0")
    assert set(faults([*wrong, ("more", "")])) == {"tickers", "from", "to", "interval", "page", "page_size", "more"}


@settings(max_examples=FUZZED, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*RANGE, "page", "page_size", "other"]) | st.text(max_size=8),
            st.text(max_size=30) | st.sampled_from(["AAPL", "2026-01-05", "1d", "1", "200"]),
        ),
        max_size=8,
    )
)
def test_any_parameters_are_a_request_or_a_validation_error(params: list[tuple[str, str]]) -> None:
    for read in (read_live, read_historical):
        try:
            read(params)
        except ApiFault as fault:
            assert fault.code == "VALIDATION_ERROR"
            assert fault.faults
            assert all(set(each) == {"field", "reason"} for each in fault.faults)
