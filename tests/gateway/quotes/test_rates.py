"""Rate limits of the quotes API: for each principal, in all and for each path, with headers that tell what is left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from openbell.desk.settings import Settings
from openbell.gateway.guard.limits import CallLimits
from openbell.net.rates import Rate
from tests.gateway.quotes.conftest import AS_OF
from tests.gateway.quotes.test_http import DAYS, LIVE, fault
from tests.gateway.streamable.gateways import Inside

QUOTES = f"{LIVE}BTC/USD"


def test_the_defaults_are_the_contracts() -> None:
    own = Settings()
    found = (own.rate_quotes, own.rate_quotes_live, own.rate_quotes_historical, own.rate_health, own.rate_metadata)
    assert found == (60, 60, 30, 120, 30)


def test_what_is_left_is_told_until_nothing_is(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, RATE_QUOTES_LIVE="3", RATE_QUOTES="100") as gateway:
        for left in (2, 1, 0):
            answer = gateway.request("GET", QUOTES)
            assert answer.status == 200
            assert (answer["x-ratelimit-limit"], answer["x-ratelimit-remaining"]) == ("3", str(left))
            assert 0 < int(answer["x-ratelimit-reset"] or 0) <= 60
        for condition in (None, "*"):
            refused = gateway.request("GET", QUOTES, If_None_Match=condition)
            found = fault(refused, 429, "RATE_LIMITED")
            assert "OPENBELL_RATE_QUOTES_LIVE" in found["message"]
            assert 1 <= int(refused["retry-after"] or 0) <= 20
            assert (refused["x-ratelimit-limit"], refused["x-ratelimit-remaining"]) == ("3", "0")
        assert gateway.request("GET", QUOTES, "bob").status == 200, "another principal has a limit of its own"
        assert gateway.request("GET", QUOTES, "reader").status == 429, "the same principal with another token has not"
        days = gateway.request("GET", DAYS)
        assert (days.status, days["x-ratelimit-limit"]) == (200, "30"), "the other path has another limit"


def test_both_paths_together_have_a_limit_and_refused_requests_count_for_none(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, RATE_QUOTES="5", RATE_QUOTES_HISTORICAL="2") as gateway:
        assert [gateway.request("GET", DAYS).status for _ in range(4)] == [200, 200, 429, 429]
        assert [gateway.request("GET", QUOTES).status for _ in range(4)] == [200, 200, 200, 429]
        assert "OPENBELL_RATE_QUOTES per" in gateway.request("GET", QUOTES).json["error"]["message"]
        for bad in (LIVE, "/v2/quotes/historical"):
            assert gateway.request("GET", bad, "bob").status == 400
        assert gateway.request("GET", QUOTES, "bob")["x-ratelimit-remaining"] == "2", "mistakes count"


def test_what_needs_no_token_is_limited_by_address(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, RATE_HEALTH="2", RATE_METADATA="2") as gateway:
        for path in ("/healthz", "/v2/openapi.json"):
            found = [gateway.request("GET", path, None) for _ in range(3)]
            assert [each.status for each in found] == [200, 200, 429]
            assert [each["x-ratelimit-remaining"] for each in found] == ["1", "0", "0"]
            fault(found[2], 429, "RATE_LIMITED")


def test_the_minute_refills_bit_by_bit() -> None:
    now = [1000.0]
    limits = CallLimits({"live": Rate(60, 60)}, now=lambda: now[0])
    assert limits.standing("a", "other") is None
    for left in range(59, -1, -1):
        assert limits.take("a", "live") is None
        found = limits.standing("a", "live")
        assert found is not None
        assert (found.limit, found.remaining, round(found.reset)) == (60, left, 60 - left)
    assert limits.take("a", "live") is not None
    now[0] += 1.0
    found = limits.standing("a", "live")
    assert found is not None
    assert (found.remaining, found.wait) == (1, 0.0)
    now[0] += 100.0
    found = limits.standing("a", "live")
    assert found is not None
    assert (found.remaining, found.reset) == (60, 0.0)


def test_a_principal_with_too_many_requests_at_once_is_refused_in_the_envelope(tmp_path: Path) -> None:
    with Inside(tmp_path, AS_OF=AS_OF, MAX_REQUESTS_EACH="1") as gateway:
        local = gateway.desk.arche.local
        arrived, goes_on = asyncio.Event(), asyncio.Event()
        get = local.get

        async def wait(*given: object) -> object:
            arrived.set()
            await goes_on.wait()
            return await get(*given)  # type: ignore[arg-type]

        local.get = wait  # type: ignore[method-assign, assignment]
        with gateway.connect() as connection:
            connection.sendall(gateway.bytes_of("GET", QUOTES))
            gateway.run(arrived.wait)
            fault(gateway.request("GET", QUOTES), 429, "RATE_LIMITED")
            gateway.loop.call_soon_threadsafe(goes_on.set)
            assert connection.recv(12) == b"HTTP/1.1 200"
