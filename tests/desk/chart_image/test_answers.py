"""Any response of the vendor is a result or a `VendorError`, and has the key nowhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from openbell.desk.pictures.chart_image.answers import failure_of, picture_of, remaining_of, stored_of
from openbell.desk.pictures.chart_image.directory_lists import read_exchanges, read_symbols, search
from openbell.desk.pictures.chart_image.errors import VendorError
from openbell.net.response import Response
from tests.servers.chart_img_server import KEY, picture

NOW = datetime(2026, 3, 18, 12, tzinfo=UTC)
FIELDS = (
    *("message", "error", "errors", "msg", "param", "url", "expire", "expireAt", "createdAt", "size", "etag", "value"),
    *("id", "name", "symbol", "exchange", "type", "typespecs", "description"),
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["https://x.example/1.png", f"https://x.example/{KEY}", "2026-04-01T00:00:00Z", "1e999", KEY]),
    st.text(max_size=5).map(lambda text: text + KEY + text),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)
BODIES = st.one_of(
    st.binary(max_size=40),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.integers(0, 2000).map(lambda size: picture(20, 20)[:size]),
)
HEADERS = st.fixed_dictionaries(
    {
        "content-type": st.sampled_from(
            ["", "image/png", "image/jpeg", "application/json", "text/plain", "text/html", KEY]
        )
    },
    optional={"retry-after": TEXTS | st.integers().map(str), "date": TEXTS, "x-ratelimit-remaining": TEXTS},
)
RESPONSES = st.builds(Response, st.integers(100, 599), HEADERS, BODIES)


def parts(value: Any) -> str:
    """Every text of a result."""
    fields = getattr(value, "__slots__", ())
    return repr([getattr(value, name) for name in fields if name != "data"] if fields else vars(value))


@settings(max_examples=400, deadline=None)
@given(RESPONSES)
def test_any_response_is_a_result_or_an_error(response: Response) -> None:
    results: list[Any] = []
    failure = failure_of(response, KEY, NOW.timestamp())
    if failure is not None:
        assert failure.wait is None or failure.wait >= 0
        assert failure.error.retry_after is None or failure.error.retry_after >= 0
        results.append(failure.error)
    left = remaining_of(response.headers)
    assert left is None or left >= 0
    for work in (
        lambda: picture_of(response, "png", KEY, left),
        lambda: stored_of(response, "png", KEY, left, "https://api.example.com", NOW),
    ):
        try:
            results.append(work())
        except VendorError as error:
            results.append(error)
    for each in results:
        assert KEY not in f"{each!s} {parts(each)}"


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, max_size=6), st.text(max_size=5))
def test_any_list_is_read(items: list[Any], text: str) -> None:
    exchanges, symbols = read_exchanges(items, KEY), read_symbols(items, "NASDAQ", KEY)
    assert KEY not in repr((exchanges, symbols))
    assert set(search(symbols, text)) <= set(symbols)
    found: list[Any] = [*exchanges, *symbols]
    for each in found:
        assert each.description.isprintable() and len(each.description) <= 120
