"""Limits of a principal: rates with bursts, requests at once, bounded memory, and typed refusals under load."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Receive, Scope, Send

from openbell.gateway.guard.limits import KINDS, CallLimits, Slots, address_key, rates_of
from openbell.gateway.guard.refusals import GuardRefusal
from openbell.net.rates import Rate
from tests.gateway.guard.serving import Served, settings_of


class Clock:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class TestRates:
    def test_a_burst_at_once_then_the_rate(self) -> None:
        clock = Clock()
        limits = CallLimits({"read": Rate(60, 5)}, now=clock)
        assert [limits.take("ann", "read") for _ in range(5)] == [None] * 5
        assert limits.take("ann", "read") == pytest.approx(1.0)
        clock.time += 0.6
        assert limits.take("ann", "read") == pytest.approx(0.4)
        clock.time += 0.4
        assert limits.take("ann", "read") is None
        assert limits.take("ann", "read") == pytest.approx(1.0)

    def test_a_refused_call_costs_nothing(self) -> None:
        clock = Clock()
        limits = CallLimits({"read": Rate(60, 1)}, now=clock)
        limits.take("ann", "read")
        for _ in range(100):
            assert limits.take("ann", "read") == pytest.approx(1.0)

    def test_idle_time_does_not_add_up_to_more_than_the_burst(self) -> None:
        clock = Clock()
        limits = CallLimits({"read": Rate(60, 5)}, now=clock)
        limits.take("ann", "read")
        clock.time += 3600
        assert [limits.take("ann", "read") is None for _ in range(7)] == [True] * 5 + [False] * 2

    def test_principals_and_classes_have_buckets_of_their_own(self) -> None:
        limits = CallLimits({"read": Rate(1, 1), "trade": Rate(1, 1)})
        assert [limits.take(who, kind) for who in ("ann", "bob") for kind in ("read", "trade")] == [None] * 4
        assert limits.take("ann", "read") is not None

    def test_a_class_without_a_rate_has_no_limit(self) -> None:
        limits = CallLimits({})
        assert {limits.take("ann", "read") for _ in range(1000)} == {None}

    @given(
        rate=st.floats(1, 1e5),
        burst=st.integers(1, 50),
        gaps=st.lists(st.floats(0, 10), min_size=1, max_size=200),
    )
    def test_no_span_has_more_calls_than_burst_and_rate_allow(self, rate: float, burst: int, gaps: list[float]) -> None:
        clock = Clock()
        limits = CallLimits({"read": Rate(rate, burst)}, now=clock)
        taken: list[float] = []
        for gap in gaps:
            clock.time += gap
            if limits.take("ann", "read") is None:
                taken.append(clock.time)
        for first, begin in enumerate(taken):
            for last in range(first, len(taken)):
                assert last - first + 1 <= burst + (taken[last] - begin) * rate / 60 + 1e-6

    def test_attack_system_clock_going_backwards(self, monkeypatch: pytest.MonkeyPatch) -> None:
        limits = CallLimits({"read": Rate(60, 2)})
        limits.take("ann", "read")
        limits.take("ann", "read")
        for moment in (0.0, 1e12, -1e12):
            monkeypatch.setattr(time, "time", lambda moment=moment: moment)
            wait = limits.take("ann", "read")
            assert wait is not None
            assert 0 < wait <= 1

    def test_the_settings_have_a_rate_for_every_class(self, tmp_path: Path) -> None:
        assert set(rates_of(settings_of(tmp_path))) == set(KINDS)
        assert "read" not in rates_of(settings_of(tmp_path, rate_read=0))
        assert rates_of(settings_of(tmp_path, rate_trade=7, burst_trade=3))["trade"] == Rate(7, 3)


class TestFlood:
    def test_attack_flood_of_principals_does_not_grow_memory(self) -> None:
        limits = CallLimits({"read": Rate(1, 1)}, most=1000)
        tracemalloc.start()
        try:
            for number in range(1000):
                limits.take(f"principal-{number}", "read")
            before = tracemalloc.get_traced_memory()[0]
            for number in range(50_000):
                limits.take(f"flood-{number}", "read")
            assert tracemalloc.get_traced_memory()[0] - before < 100_000
        finally:
            tracemalloc.stop()
        assert len(limits) <= 1001

    def test_attack_flood_of_principals_does_not_lift_the_limit_of_another(self) -> None:
        limits = CallLimits({"read": Rate(1, 1)}, most=100)
        limits.take("ann", "read")
        answers = [limits.take(f"flood-{number}", "read") for number in range(10_000)]
        assert limits.take("ann", "read") is not None
        assert answers.count(None) == 100  # 99 buckets of their own and the shared one

    def test_full_buckets_are_forgotten(self) -> None:
        clock = Clock()
        limits = CallLimits({"read": Rate(60, 1)}, most=100, now=clock)
        for number in range(100):
            limits.take(f"early-{number}", "read")
        clock.time += 2
        assert {limits.take(f"late-{number}", "read") for number in range(100)} == {None}
        assert len(limits) <= 100

    def test_a_network_of_ipv6_addresses_is_one_client(self) -> None:
        assert address_key("2001:db8:1:2:3::4") == address_key("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
        assert address_key("2001:db8:1:3::4") != address_key("2001:db8:1:2::4")
        assert address_key("::ffff:192.0.2.1") == address_key("192.0.2.1") == "192.0.2.1"
        assert address_key("fe80::1%eth0") == "fe80::/64"
        assert len(address_key("x" * 10_000)) == 64


class TestRefusals:
    def test_a_refusal_says_when_to_retry_in_whole_seconds(self) -> None:
        limits = CallLimits({"trade": Rate(1, 1)}, now=Clock())
        limits.take("ann", "trade")
        refusal = limits.refusal("ann", "trade")
        assert refusal is not None
        assert (refusal.status, refusal.seconds) == (429, 60)
        assert (b"retry-after", b"60") in refusal.start(0)["headers"]
        assert json.loads(refusal.body())["retry_after"] == 60
        assert GuardRefusal(429, "x", "y", 0.0001).seconds == 1
        assert GuardRefusal(429, "x", "y", 2.0001).seconds == 3

    def test_a_json_rpc_request_gets_a_json_rpc_error(self) -> None:
        body = json.loads(GuardRefusal(429, "rate_limited", "Too many.", 2.5).rpc_body("id-7"))
        assert body == {
            "jsonrpc": "2.0",
            "id": "id-7",
            "error": {"code": 429, "message": "Too many.", "data": {"reason": "rate_limited", "retry_after": 3}},
        }


class TestSlots:
    def test_in_all_and_for_each_principal(self) -> None:
        slots = Slots(3, 2)
        held = [slots.claim("ann"), slots.claim("ann")]
        third = slots.claim("ann")
        assert isinstance(third, GuardRefusal)
        assert (third.status, third.reason, third.seconds) == (429, "too_many_requests", 1)
        held.append(slots.claim("bob"))
        fourth = slots.claim("cat")
        assert isinstance(fourth, GuardRefusal)
        assert (fourth.status, fourth.reason, fourth.seconds) == (503, "busy", 1)
        for claim in held:
            assert not isinstance(claim, GuardRefusal)
            claim.release()
            claim.release()
        assert (slots.total, len(slots)) == (0, 0)

    def test_a_slot_is_given_back_when_the_block_ends(self) -> None:
        slots = Slots(1, 1)
        claim = slots.claim("ann")
        assert not isinstance(claim, GuardRefusal)
        with pytest.raises(RuntimeError), claim:
            raise RuntimeError
        assert slots.total == 0


def test_300_clients_at_once_get_answers_or_typed_refusals(tmp_path: Path) -> None:
    slots = Slots(20, 10)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        claim = slots.claim(scope["query_string"].decode())
        if isinstance(claim, GuardRefusal):
            await claim.send(send, claim.rpc_body(1))
            return
        with claim:
            await asyncio.sleep(0.05)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def main(port: int) -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=300)
        async with httpx2.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
            urls = [f"http://127.0.0.1:{port}/mcp?principal-{number % 30}" for number in range(600)]
            return await asyncio.gather(*(client.post(url, content=b"{}") for url in urls))

    with Served(lambda _port: app, settings_of(tmp_path)) as served:
        answers = asyncio.run(main(served.port))
    counts = Counter(answer.status_code for answer in answers)
    assert set(counts) <= {200, 429, 503}
    assert counts[200] >= 20
    assert counts[503] > 0
    for answer in answers:
        if answer.status_code != 200:
            assert answer.headers["retry-after"] == "1"
            assert answer.json()["error"]["data"]["reason"] in {"busy", "too_many_requests"}
    assert (slots.total, len(slots)) == (0, 0)
